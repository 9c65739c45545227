// Timelines as a trace in Chrome's JSON format, for ui.perfetto.dev: a process a rank (of ranks that
// behave alike, one), a thread a stream, a counter a link.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "model/cluster/network.hpp"
#include "model/schedule/schedule.hpp"
#include "sim/timeline.hpp"

namespace attnsim::cli {

class trace {
 public:
  /// The recorded intervals and link loads of one pass of a run, "predicted" or "measured", that
  /// starts at `offset`.
  void add(const std::string& run, const schedule&, const timeline&, seconds offset);
  void add_links(const network&, const timeline&, seconds offset);

  std::string str() const;

 private:
  using json = nlohmann::ordered_json;

  int process(const std::string& name, const std::vector<std::string>& streams);

  json events_ = json::array();
  std::vector<std::string> processes_;
};

}  // namespace attnsim::cli
