// Times by the shape of the grid (ask/grid_map.hpp): JSON and a page with a map.
#pragma once

#include <nlohmann/json.hpp>

#include "ask/grid_map.hpp"
#include "report/page.hpp"

namespace attnsim::report {

/// {"schema", "cells": [{"grid": [R, C], "ulysses", "schedule", "time_s"}]}, those that run.
nlohmann::ordered_json to_json(const ask::grid_map&);

/// Precondition: some grid runs.
page page_of(const ask::grid_map&);

}  // namespace attnsim::report
