#include "tests/hosts/launch_result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <regex>

namespace attnsim::hosts {
namespace {

using state = rank_end::state;
using condition = std::function<bool(const rank_end&)>;

/// "rank 2 on h1, rank 3 on h1"; empty where no rank meets the condition.
std::string named(const std::vector<rank_end>& ranks, const condition& met) {
  std::vector<std::string> names;
  for (const auto& end : ranks)
    if (met(end))
      names.push_back(fmt::format("rank {} on {}", end.rank, emulated_hosts::name(end.host)));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string first_failed(const std::vector<rank_end>& ranks) {
  const rank_end* first = nullptr;
  for (const auto& end : ranks)
    if (end.how == state::exited && end.status != 0 && (!first || end.when < first->when))
      first = &end;
  if (!first) return "";
  return fmt::format("{} {} {}", named({*first}, [](auto&) { return true; }),
                     first->status > 128 ? "was killed by signal" : "exited with code",
                     first->status > 128 ? first->status - 128 : first->status);
}

std::string cut_off(const launch_result& result) {
  std::vector<std::string> cuts;
  for (const auto& cable : result.pulled_cables) {
    const auto ranks = named(result.ranks, [&](auto& end) {
      return end.host == cable.host && end.how != state::exited;
    });
    if (!ranks.empty()) cuts.push_back(fmt::format("{}: {} is down", ranks, cable.interface));
  }
  return fmt::format("{}", fmt::join(cuts, "; "));
}

std::string in_state(const std::vector<rank_end>& ranks, state how, const char* what) {
  const auto names = named(ranks, [how](auto& end) { return end.how == how; });
  return names.empty() ? "" : names + ": " + what;
}

std::string on_lost_host(const launch_result& result) {
  if (result.lost_hosts.empty()) return "";
  const auto names = named(result.ranks, [&](auto& end) {
    return end.host == result.lost_hosts.front() && end.how == state::never_started;
  });
  return names.empty() ? "" : names + ": never started, the host could not be entered";
}

std::string cause(const launch_result& result) {
  for (const auto& found : {first_failed(result.ranks), cut_off(result), on_lost_host(result),
                            in_state(result.ranks, state::never_started, "never started"),
                            in_state(result.ranks, state::starting, "did not come to MPI_Init"),
                            in_state(result.ranks, state::running, "still running")})
    if (!found.empty()) return found;
  return fmt::format("mpirun ended with status {}", result.status);
}

}  // namespace

std::string launch_result::failure() const {
  if (status == 0) return "";
  const auto prefix =
      timed_out ? fmt::format("time-out after {}: ", to_string(duration)) : std::string();
  return prefix + cause(*this);
}

void mark_starting(std::vector<rank_end>& ranks, const std::string& errors) {
  static const std::regex program_job(R"(DATA FOR JOB: \[\d+,1\])");
  static const std::regex not_in_mpi(R"(Rank: (\d+)\t[^\n]*State: RUNNING)");
  std::smatch job;
  if (!std::regex_search(errors, job, program_job)) return;
  const std::string report = job.suffix();
  for (std::sregex_iterator line(report.begin(), report.end(), not_in_mpi), end; line != end;
       ++line) {
    const auto rank = std::stoul((*line)[1]);
    if (rank < ranks.size() && ranks[rank].how == state::running) ranks[rank].how = state::starting;
  }
}

}  // namespace attnsim::hosts
