// Predictions as people and programs read them: lines and tables, JSON, CSV.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ask/planner.hpp"
#include "report/table.hpp"

namespace attnsim::report {

/// Grid and, where there are any, degrees: "8x4 U2 T4", with U for Ulysses and T for tensor parallel.
std::string grid_of(const strategy&);
/// The same, with D for data-parallel groups: "8x4 U2 D2".
std::string grid_of(const prediction&);
/// Schedule and grid: "mesh 8x4 U2".
std::string name_of(const prediction&);
/// "mesh 8x4 U2, zigzag tokens, node-major".
std::string strategy_of(const prediction&);
/// "131072 tokens x 1, 32 heads, 8 K/V heads of 128, causal, bf16".
std::string problem_of(const attention&);

/// "network node0.nic0->leaf0 (83 %)".
std::string bound_by(const bottleneck&);

/// "1.42 x 12.3 ms, bound by the links of node0 to node3 (leaf to spine)"; empty without a limit.
std::string limit_of(const prediction&);

/// The object of the command line's contract: all figures (ask/figures.hpp), and the problem.
nlohmann::ordered_json to_json(const prediction&);
/// What was asked: the figures of the problem, and the pass.
nlohmann::ordered_json problem_to_json(const attention&, pass_kind);

table ranking_of(const std::vector<prediction>& ranked);

std::string to_table(const prediction&);
/// The ranking, and every candidate's warnings.
std::string to_table(const std::vector<prediction>& ranked);
std::string to_csv(const prediction&);
std::string to_csv(const std::vector<prediction>&);

/// The same of a plan's candidates; JSON with what was asked.
nlohmann::ordered_json to_json(const plan_result&);
std::string to_table(const plan_result&);
std::string to_csv(const plan_result&);

}  // namespace attnsim::report
