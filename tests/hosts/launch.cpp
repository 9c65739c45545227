#include "tests/hosts/launch.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "model/error.hpp"
#include "tests/hosts/scripts.hpp"

namespace attnsim::hosts {
namespace {

namespace fs = std::filesystem;
using clock = std::chrono::steady_clock;

/// A folder inside the namespaces for what one launch needs: its scripts, the ranks' records, Open
/// MPI's sockets.
class launch_folder {
 public:
  explicit launch_folder(const private_namespaces& namespaces) {
    outside_ = namespaces.outside("/run/launch-XXXXXX");
    if (!mkdtemp(outside_.data())) throw std::runtime_error("cannot create " + outside_);
    inside_ = "/run/" + fs::path(outside_).filename().string();
    fs::create_directory(outside("ranks"));
    fs::create_directory(outside("hosts"));
    namespaces.write_script(inside("enter_host"), scripts::enter_host);
    namespaces.write_script(inside("run_rank"), scripts::run_rank);
  }
  ~launch_folder() {
    std::error_code ignored;
    fs::remove_all(outside_, ignored);
  }
  launch_folder(const launch_folder&) = delete;
  launch_folder& operator=(const launch_folder&) = delete;

  std::string inside(const std::string& name = "") const { return inside_ + "/" + name; }
  fs::path outside(const std::string& name) const { return fs::path(outside_) / name; }

 private:
  std::string outside_, inside_;
};

std::vector<int> all_below(int count) {
  std::vector<int> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

void check_all_below(const std::vector<int>& numbers, int count, const char* key) {
  for (const int number : numbers)
    if (number < 0 || number >= count)
      throw input_error(key, std::to_string(number), fmt::format("0 to {}", count - 1));
}

launch_request with_defaults(const emulated_hosts& hosts, launch_request request) {
  if (request.hosts.empty()) request.hosts = all_below(hosts.network().hosts);
  if (request.rails.empty()) request.rails = all_below(hosts.network().rails);
  if (request.ranks == 0) request.ranks = static_cast<int>(request.hosts.size());
  check_all_below(request.hosts, hosts.network().hosts, "host");
  check_all_below(request.rails, hosts.network().rails, "rail");
  if (request.ranks < 1) throw input_error("ranks", std::to_string(request.ranks), "1 or more");
  if (request.time_out.count() < 1)
    throw input_error("time-out", std::to_string(request.time_out.count()), "1 s or more");
  if (!is_installed("mpirun"))
    throw std::runtime_error("launching needs the program mpirun (package openmpi-bin)");
  return request;
}

/// How many ranks the i-th host of the request takes.
int ranks_on(const launch_request& request, std::size_t i) {
  const auto count = static_cast<int>(request.hosts.size());
  return request.ranks / count + (static_cast<int>(i) < request.ranks % count);
}

std::string host_slots(const launch_request& request) {
  std::vector<std::string> slots;
  for (std::size_t i = 0; i < request.hosts.size(); ++i)
    if (const int ranks = ranks_on(request, i); ranks > 0)
      slots.push_back(fmt::format("{}:{}", emulated_hosts::name(request.hosts[i]), ranks));
  return fmt::format("{}", fmt::join(slots, ","));
}

std::vector<std::pair<std::string, std::string>> mpi_parameters(const launch_request& request,
                                                                const launch_folder& folder) {
  return {{"plm", "rsh"},
          {"plm_rsh_agent", folder.inside("enter_host")},
          {"plm_rsh_no_tree_spawn", "1"},
          {"oob_tcp_if_include", "control"},
          {"pml", "ob1"},
          {"btl", "self,vader,tcp"},
          {"btl_tcp_if_include", fmt::format("rail{}", fmt::join(request.rails, ",rail"))},
          {"btl_tcp_flags", "send"},  // a put is one fragment: the two directions would take turns
          {"btl_vader_backing_directory", folder.inside()},
          {"orte_tmpdir_base", folder.inside()},
          {"mpi_yield_when_idle", "1"}};
}

command_line mpirun_command(const launch_request& request, const launch_folder& folder) {
  auto command = contained(request.time_out + launch_grace);
  command.insert(command.end(), {"mpirun", "--allow-run-as-root", "--bind-to", "none"});
  command.insert(command.end(), {"--timeout", std::to_string(request.time_out.count())});
  command.insert(command.end(), {"--report-state-on-timeout", "--wdir", fs::current_path()});
  command.insert(command.end(), {"-np", std::to_string(request.ranks)});
  command.insert(command.end(), {"--host", host_slots(request)});
  for (const auto& [parameter, value] : mpi_parameters(request, folder))
    command.insert(command.end(), {"--mca", parameter, value});
  command.insert(command.end(), {folder.inside("run_rank"), request.program});
  command.insert(command.end(), request.arguments.begin(), request.arguments.end());
  return command;
}

rank_end read_end(int rank, int host, const fs::path& file) {
  rank_end end{.rank = rank, .host = host};
  std::ifstream record(file);
  if (!record) return end;
  end.how = rank_end::state::running;
  if (record >> end.status) {
    end.how = rank_end::state::exited;
    end.when = fs::last_write_time(file);
  }
  return end;
}

std::vector<rank_end> read_ends(const launch_request& request, const launch_folder& folder) {
  std::vector<rank_end> ends;
  for (std::size_t i = 0; i < request.hosts.size(); ++i)
    for (int k = 0; k < ranks_on(request, i); ++k) {
      const auto rank = static_cast<int>(ends.size());
      const auto record = folder.outside(fmt::format("ranks/{}", rank));
      ends.push_back(read_end(rank, request.hosts[i], record));
    }
  return ends;
}

std::vector<int> read_lost_hosts(const launch_request& request, const launch_folder& folder) {
  std::multimap<fs::file_time_type, int> lost;
  for (const int host : request.hosts) {
    const auto record = folder.outside("hosts/" + emulated_hosts::name(host));
    if (fs::exists(record)) lost.emplace(fs::last_write_time(record), host);
  }
  std::vector<int> hosts;
  for (const auto& [when, host] : lost) hosts.push_back(host);
  return hosts;
}

}  // namespace

launch_result launch(const emulated_hosts& hosts, const launch_request& asked) {
  const auto request = with_defaults(hosts, asked);
  const launch_folder folder(hosts.namespaces());
  const auto begin = clock::now();
  auto run = run_program(hosts.namespaces().inside(mpirun_command(request, folder)));
  const auto duration = clock::now() - begin;

  launch_result result{.timed_out = run.status != 0 && duration >= request.time_out,
                       .status = run.status,
                       .duration = seconds(std::chrono::duration<double>(duration).count()),
                       .output = std::move(run.output),
                       .errors = std::move(run.errors),
                       .ranks = read_ends(request, folder)};
  if (result.status == 0) return result;
  mark_starting(result.ranks, result.errors);
  result.lost_hosts = read_lost_hosts(request, folder);
  result.pulled_cables = hosts.pulled_cables();
  return result;
}

}  // namespace attnsim::hosts
