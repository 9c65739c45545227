// The table of a step's figures, as ask/figures.hpp has them for one attention layer.
#pragma once

#include "ask/figures.hpp"
#include "ask/step.hpp"

namespace attnsim::ask {

template <>
std::span<const figure<step_answer>> figures();

}  // namespace attnsim::ask
