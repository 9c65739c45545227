// What to write into a framework's settings to run a step: attention's (ask/frameworks.hpp) and all else. Facts from
// NVIDIA/Megatron-LM megatron/training/arguments.py and pytorch/torchtitan torchtitan/config/job_config.py.
#pragma once

#include <string>
#include <string_view>

#include "ask/frameworks.hpp"
#include "ask/step_plan.hpp"

namespace attnsim::ask {

/// Empty, or why the framework cannot run the step.
std::string step_refusal(std::string_view framework, const step_answer&);

/// Lines to put into its settings. Precondition: no refusal.
std::string step_settings(std::string_view framework, const step_answer&);

/// For the best candidate that the framework can run, and why not for those before it. Throws input_error for a framework
/// whose steps are not known (megatron and torchtitan are), infeasible when it can run none of the candidates.
emitted_settings settings_of_best(std::string_view framework, const step_plan&);

}  // namespace attnsim::ask
