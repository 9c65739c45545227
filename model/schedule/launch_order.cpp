#include "model/schedule/launch_order.hpp"

#include <algorithm>
#include <deque>

#include "model/named.hpp"

namespace attnsim {
namespace {

constexpr name_table<launch_order, 2> launch_orders{
    {{launch_order::communication_first, "communication-first"},
     {launch_order::compute_first, "compute-first"}}};

/// Takes operations in program order and gives them out again, communication as late as it may be.
class reordering {
 public:
  explicit reordering(const schedule& s) : program_(s.program), launched_(s.streams.size()) {}

  std::vector<operation> run() {
    for (std::size_t op = 0; op < program_.size(); ++op) {
      if (program_[op].stream != 0) {
        held_.push_back(op);
        continue;
      }
      while (!all_launched(program_[op].needs)) launch_held();
      launch(op);
      while (!held_.empty()) launch_held();
    }
    while (!held_.empty()) launch_held();
    return std::move(result_);
  }

 private:
  bool all_launched(const std::vector<std::uint32_t>& needs) const {
    for (std::size_t stream = 0; stream < needs.size(); ++stream) {
      if (launched_[stream] < needs[stream]) return false;
    }
    return true;
  }

  void launch_held() {
    const auto op = held_.front();
    held_.pop_front();
    launch(op);
  }

  void launch(std::size_t op) {
    ++launched_[static_cast<std::size_t>(program_[op].stream)];
    result_.push_back(program_[op]);
  }

  const std::vector<operation>& program_;
  std::vector<std::uint32_t> launched_;  ///< by stream
  std::deque<std::size_t> held_;
  std::vector<operation> result_;
};

}  // namespace

std::string_view name_of(launch_order order) {
  return find_name(launch_orders, order);
}

launch_order parse_launch_order(std::string_view text) {
  return find_value(launch_orders, text);
}

schedule launched_compute_first(schedule s) {
  s.program = reordering(s).run();
  return s;
}

}  // namespace attnsim
