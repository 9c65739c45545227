// Times of NCCL's operations between GPUs, for calibration:
//   tests/gpu/launch RANKS transfer_sweep [--transport LABEL] [--largest BYTES] [--channels N]
// Prints CSV: transport,ranks,channels,operation,slot_bytes,single_us,repeated_us. A slot is what one member contributes
// to (all_gather, reduce_scatter: keeps of) or sends another in an operation. single: the median of operations that start
// together on idle GPUs; repeated: the mean within a run of back-to-back ones. Both of the slowest rank.
#include <algorithm>
#include <cstring>

#include "tests/gpu/rank.hpp"

namespace attnsim::validate {
namespace {

class sweep {
 public:
  sweep(const options& o, const job_place& place)
      : options_(o),
        net_(join(o, place)),
        device_(kernels::make_device(kernel_of(o), {.local_rank = place.local_rank})) {
    std::vector<int> all;
    for (int r = 0; r < net_->ranks(); ++r) all.push_back(r);
    stream_ = device_->create_stream(kernels::stream_priority::high);
    channel_ = net_->open(*device_, stream_, all);
    largest_ = static_cast<std::size_t>(o.number("largest", 256 << 20));
    const auto bytes = largest_ * static_cast<std::size_t>(net_->ranks());
    from_ = device_->allocate(bytes);
    to_ = device_->allocate(bytes);
    const kernels::token_shape whole{1, static_cast<std::int64_t>(bytes / 2 / 128), 1, 128};
    for (auto* memory : {from_, to_})
      device_->fill(stream_, whole, dense(memory, data_type::bf16, whole), 0.7f);
    device_->synchronize(stream_);
  }
  ~sweep() {
    channel_.reset();
    device_->free(from_);
    device_->free(to_);
  }

  bool run() {
    for (const char* operation :
         {"send", "exchange", "all_gather", "reduce_scatter", "all_to_all"}) {
      for (std::size_t bytes = 4096; bytes <= largest_; bytes *= 4) measure(operation, bytes);
    }
    return true;
  }

 private:
  void enqueue(const std::string& operation, std::size_t bytes) {
    const int n = net_->ranks(), own = net_->rank();
    const payload p[] = {{from_, to_, bytes, data_type::bf16}};
    if (operation == "send") {  // from even ranks to odd ones
      const bool sends = own % 2 == 0;
      if (n % 2 == 0)
        channel_->send_receive(operation, sends ? own + 1 : own, sends ? own : own - 1, p);
    } else if (operation == "exchange") {  // round a ring
      channel_->send_receive(operation, (own + 1) % n, (own + n - 1) % n, p);
    } else if (operation == "all_gather") {
      channel_->all_gather(operation, p);
    } else if (operation == "reduce_scatter") {
      channel_->reduce_scatter(operation, p);
    } else {
      channel_->all_to_all(operation, p);
    }
  }

  double time(const std::string& operation, std::size_t bytes, int times) {
    net_->barrier();
    const auto begin = device_->record(stream_);
    for (int i = 0; i < times; ++i) enqueue(operation, bytes);
    const auto end = device_->record(stream_);
    const double seconds = device_->seconds_between(begin, end);
    device_->release(begin);
    device_->release(end);
    return slowest(seconds);
  }

  double slowest(double own) {
    blob data(sizeof own);
    std::memcpy(data.data(), &own, sizeof own);
    for (const auto& one : net_->share(data)) {
      double other = 0;
      std::memcpy(&other, one.data(), sizeof other);
      own = std::max(own, other);
    }
    return own;
  }

  void measure(const std::string& operation, std::size_t bytes) {
    time(operation, bytes, 2);  // connects the peers
    std::vector<double> singles;
    for (int i = 0; i < (bytes > (16u << 20) ? 5 : 9); ++i)
      singles.push_back(time(operation, bytes, 1));
    std::nth_element(singles.begin(), singles.begin() + static_cast<long>(singles.size() / 2),
                     singles.end());
    const int times = bytes > (16u << 20) ? 4 : 20;
    const double repeated = time(operation, bytes, times) / times;
    if (net_->rank() != 0) return;
    fmt::print("{},{},{},{},{},{:.1f},{:.1f}\n", options_.text("transport", "nvlink"),
               net_->ranks(), options_.text("channels", "default"), operation, bytes,
               1e6 * singles[singles.size() / 2], 1e6 * repeated);
    std::fflush(stdout);
  }

  const options& options_;
  std::unique_ptr<transport> net_;
  std::unique_ptr<kernels::backend> device_;
  kernels::stream_id stream_;
  std::unique_ptr<channel> channel_;
  std::size_t largest_ = 0;
  void *from_ = nullptr, *to_ = nullptr;
};

}  // namespace
}  // namespace attnsim::validate

int main(int argc, char** argv) {
  using namespace attnsim::validate;
  return run_rank(argc, argv,
                  [](const options& o, const job_place& place) { return sweep(o, place).run(); });
}
