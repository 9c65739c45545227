#include "sim/parallel.hpp"

#ifdef ATTNSIM_HAS_TBB
#include <tbb/parallel_for.h>
#endif

namespace attnsim {

void parallel_for(std::size_t count, const std::function<void(std::size_t)>& body) {
#ifdef ATTNSIM_HAS_TBB
  tbb::parallel_for(std::size_t{0}, count, body, tbb::simple_partitioner());
#else
  for (std::size_t i = 0; i < count; ++i) body(i);
#endif
}

}  // namespace attnsim
