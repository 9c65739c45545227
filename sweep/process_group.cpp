#include "sweep/process_group.hpp"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace attnsim::sweep {

void process_group::run(std::vector<std::size_t> points, int threads,
                        const std::function<worker()>& make_worker,
                        const std::function<void(std::size_t, const std::string&)>& done) {
  const auto workers = static_cast<std::size_t>(threads + processes_ - 1);
  dispenser work(std::move(points), workers, done);
  std::vector<std::jthread> team;
  for (int t = 0; t < threads; ++t) team.emplace_back([&] { work.work(make_worker()); });
  serve(work);
  team.clear();
  work.rethrow_failure();
}

int available_cores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) return CPU_COUNT(&cores);
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace attnsim::sweep
