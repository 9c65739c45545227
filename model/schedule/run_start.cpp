#include "model/schedule/run_start.hpp"

#include "model/named.hpp"

namespace attnsim {
namespace {

constexpr name_table<run_start, 3> run_starts{{
    {run_start::in_sequence, "in-sequence"},
    {run_start::idle, "idle"},
    {run_start::idle_graph, "idle-graph"},
}};

}  // namespace

std::string_view name_of(run_start start) {
  return find_name(run_starts, start);
}

run_start parse_run_start(std::string_view text) {
  return find_value(run_starts, text);
}

}  // namespace attnsim
