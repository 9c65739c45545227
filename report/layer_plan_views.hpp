// Plans for each kind of a model's layers (ask/layer_plans.hpp): as a table, JSON and CSV.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "ask/layer_plans.hpp"

namespace attnsim::report {

/// A row a kind, then the time of all layers.
std::string to_table(const ask::layer_plans&);
nlohmann::ordered_json to_json(const ask::layer_plans&);
/// A row a kind: how many layers, then the columns of a prediction.
std::string to_csv(const ask::layer_plans&);

}  // namespace attnsim::report
