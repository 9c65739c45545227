#include "validate/token_moves.hpp"

#include <gmock/gmock.h>

namespace attnsim::validate {
namespace token_moves_test {

using testing::ElementsAre;
using testing::SizeIs;

TEST(token_moves, equal_orders_are_one_move) {
  EXPECT_THAT(token_moves({{0, 6, 2}}, {{0, 6, 2}}), ElementsAre(token_move{0, 1, 0, 1, 6}));
}

TEST(token_moves, striped_chunks_interleave) {
  EXPECT_THAT(token_moves({{0, 4, 2}, {1, 4, 2}}, {{0, 8, 1}}),
              ElementsAre(token_move{0, 1, 0, 2, 4}, token_move{4, 1, 1, 2, 4}));
  EXPECT_THAT(token_moves({{0, 8, 1}}, {{0, 4, 2}, {1, 4, 2}}), SizeIs(2));
}

TEST(token_moves, picks_chunks_out_of_many) {
  EXPECT_THAT(token_moves({{0, 4, 1}, {4, 4, 1}, {8, 4, 1}}, {{4, 4, 1}}),
              ElementsAre(token_move{4, 1, 0, 1, 4}));
}

TEST(token_moves, refuses_tokens_that_are_not_there) {
  EXPECT_THROW(token_moves({{0, 4, 1}}, {{2, 4, 1}}), std::logic_error);
}

}  // namespace token_moves_test
}  // namespace attnsim::validate
