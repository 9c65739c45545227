#include <tbb/parallel_for.h>

#include "sim/parallel.hpp"

namespace attnsim {

void parallel_for(std::size_t count, const std::function<void(std::size_t)>& body) {
  tbb::parallel_for(std::size_t{0}, count, body, tbb::simple_partitioner());
}

}  // namespace attnsim
