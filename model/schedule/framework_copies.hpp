// Copies that a framework makes around communication and the algorithm itself does not need, because its calls want tensors in
// one piece, or tokens in order:
//
//   joined     K and V into one buffer before their first shift, which is one message then; or before every shift and
//              all-gather, dK and dV too
//   gathered   what an all-gather brought: a list of chunks is concatenated, or they are put in order
//   scattered  what a reduce-scatter takes, likewise
//   received   what the all-to-alls of an exchange of heads brought
//   batched    the same, of several sequences only: they come apart
//   returned   what the all-to-alls that give results back take
//   separate   no copy: an exchange of heads is a call for each tensor, one after the other
//
// PyTorch copies a tensor whose axes change places element by element: `rate` is the share of the memory's rate, as other operations
// reach it, at which the framework copies.
//
// They are operations of the program as all others: the model, the simulator and the executor read them there. Where the
// algorithm copies there already, as where zigzag chunks are put in order, none is added, nor in schedules that decode.
#pragma once

#include <string_view>

#include "model/schedule/schedule.hpp"

namespace attnsim {

struct framework_copies {
  enum class joining { none, first, every };

  joining joined = joining::none;
  bool gathered = false;
  bool scattered = false;
  bool received = false;
  bool batched = false;
  bool returned = false;
  bool separate = false;
  double rate = 1;

  friend bool operator==(const framework_copies&, const framework_copies&) = default;
};

std::string_view name_of(framework_copies::joining);
/// Throws std::invalid_argument that lists the names.
framework_copies::joining parse_joining(std::string_view);

/// Keys that an exchange of heads adds to a cached prefix are not copied once more.
schedule with_framework_copies(schedule, const framework_copies&, const attention&);

}  // namespace attnsim
