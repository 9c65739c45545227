#include "model/schedule/algorithms/generators.hpp"

namespace attnsim {
namespace {

std::vector<tensor> tensors_of(const operands& list) {
  std::vector<tensor> result;
  for (const auto& o : list) result.push_back(o.what);
  return result;
}

}  // namespace

ring_reduction::ring_reduction(schedule_builder& builder, int axis, int stream, precision wire,
                               position home)
    : builder_(&builder), axis_(axis), stream_(stream), wire_(wire), home_(home) {}

void ring_reduction::combine(const operands& own_part, const operands& into) {
  if (incoming_.empty()) {
    builder_->add(op_kind::copy, 0, own_part, into);
  } else {
    const bool outputs = contains(own_part, tensor::o);
    builder_->add(outputs ? op_kind::merge : op_kind::accumulate, 0, incoming_ + own_part, into);
  }
}

void ring_reduction::hop(int k, const operands& own_part) {
  const auto chunk_at = [&](int distance) {
    auto where = home_;
    where.shift[static_cast<std::size_t>(axis_)] += distance;
    return builder_->chunk(tensors_of(own_part), where, wire_);
  };
  auto outgoing = own_part;
  if (!incoming_.empty() || !builder_->all_in(own_part, wire_)) {
    outgoing = chunk_at(k);
    combine(own_part, outgoing);
  }
  incoming_ = chunk_at(k + 1);
  builder_->add(op_kind::shift, stream_, outgoing, incoming_, only(axis_), -1);
}

void ring_reduction::finish(const operands& own_part, const operands& result) {
  combine(own_part, result);
}

}  // namespace attnsim
