#include "validate/random_memory.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include "kernels/float16.hpp"

namespace attnsim::validate {
namespace {

std::vector<kernels::bf16> random_numbers() {
  constexpr std::size_t count = 1 << 22;
  std::minstd_rand source(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<kernels::bf16> numbers(count);
  for (auto& x : numbers) x = kernels::bf16(uniform(source));
  return numbers;
}

}  // namespace

random_memory::random_memory(kernels::backend& device, std::size_t bytes)
    : device_(device), data_(static_cast<std::byte*>(device.allocate(bytes))) {
  static const auto numbers = random_numbers();
  const auto stream = device.create_stream();
  auto filled = std::min(bytes, numbers.size() * sizeof numbers[0]);
  device.copy(stream, data_, numbers.data(), filled);
  while (filled < bytes) {
    const auto more = std::min(filled, bytes - filled);
    device.copy(stream, data_ + filled, data_, more);
    filled += more;
  }
  device.synchronize(stream);
}

}  // namespace attnsim::validate
