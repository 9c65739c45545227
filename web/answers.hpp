// What the page asks: a request as JSON to an answer as JSON, in the words of the command line.
//
//   {"ask": "plan", "cluster": "nd-h100-v5", "fields": {"nodes": "8", "seq": "1M", "heads": "64"}, "top": 20}
//     -> {"result": what `attnsim plan --format json` prints}; with "views": true also "html", "charts", "csv"
//   any -> {"error": {"exit": 2, "field": "heads", "message": "heads: '0': expected ..."}}
//
// `fields` are those of a question by their names (ask/question.hpp), as texts; a list's values are an array. "files" are
// texts by name, which the request's names of files may then be. What is asked:
//
//   tables    the fields of a question, a step and a search, the shipped clusters, importers, schedules
//   predict   one strategy
//   plan      ranked candidates, with "views" also settings for frameworks; "schedules": names, separated by commas
//   what-if   plans as one value varies: "vary": "seq=64K..1M"
//   grids     time by the shape of the grid
//   step      a model's training step or prefill; its fields are ask/step_question.hpp's
//   search    a schedule better than the published ones: "evaluations", how many to simulate
//   cluster   its file, its drawing, what stands behind its figures, warnings about its wiring
//   import    "files" of other programs as a cluster file; "as", "name", "device", "nic-bandwidth", "nodes", "fabric"
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace attnsim::web {

/// Is told while an answer is worked out; what is not set is not told.
struct listener {
  std::function<void(std::size_t done, std::size_t wanted)> progress;
  std::function<void(const std::string& answer)>
      so_far;  ///< with views, of a plan: the candidates that are known, as "html" and "charts"
};

/// Never throws: what is wrong is in the answer.
std::string answer(const std::string& request, const listener& = {});

}  // namespace attnsim::web
