// Re-ordering tokens: the strided copies that bring a list of tokens into another order.
#pragma once

#include <vector>

#include "model/attention/tokens.hpp"

namespace attnsim::validate {

/// `count` tokens from places from_first, from_first + from_step, ... to places to_first, ...
struct token_move {
  std::int64_t from_first = 0, from_step = 1;
  std::int64_t to_first = 0, to_step = 1;
  std::int64_t count = 0;
  bool operator==(const token_move&) const = default;
};

/// As few as neighbouring tokens allow. `to` may hold fewer tokens than `from`; std::logic_error
/// for one that `from` lacks.
std::vector<token_move> token_moves(const token_set& from, const token_set& to);

}  // namespace attnsim::validate
