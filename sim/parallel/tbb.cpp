#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include "sim/parallel.hpp"

namespace attnsim {

void parallel_for(std::size_t count, const std::function<void(std::size_t)>& body) {
  // A body that waits for a loop of its own must not begin another body of the loop around it meanwhile.
  tbb::this_task_arena::isolate(
      [&] { tbb::parallel_for(std::size_t{0}, count, body, tbb::simple_partitioner()); });
}

}  // namespace attnsim
