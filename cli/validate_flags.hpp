// What attnsim validate is asked, of attention or of a layer.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/output.hpp"
#include "cli/run_case.hpp"
#include "model/cluster/cluster.hpp"
#include "validate/compare.hpp"
#include "validate/repeats.hpp"
#include "validate/transport.hpp"

namespace attnsim::cli {

struct validate_flags {
  ask::question cluster;  ///< the fields of the cluster
  case_flags run;
  output_flags output;
  std::string scope = "attention", transport = "inprocess", emulate = "none", repeats,
              time_out = "60", timelines, trace, cases, report;
  bool times_only = false;
};

nlohmann::ordered_json to_json(const validate::part_time&);
std::chrono::seconds time_out_of(const validate_flags&);
validate::repeats_wanted repeats_of(const validate_flags&);

// --- A layer (validate_layer.cpp) -----------------------------------------------------------------

/// Throws input_error for what only attention alone has.
void refuse_for_layer(const validate_flags&);

void run_layer(const validate_flags&, const cluster&, output_format);

/// One line of --cases: adds what came out to its result. Whether its numbers passed.
bool run_layer_case(const validate_flags&, const cluster&, validate::transport&,
                    nlohmann::ordered_json& result);

}  // namespace attnsim::cli
