#include "calibrate/measurement_plan.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

#include "model/named.hpp"

namespace attnsim {
namespace {

constexpr name_table<point_kind, 7> point_kinds{{{point_kind::kernel, "kernel"},
                                                 {point_kind::memory, "memory"},
                                                 {point_kind::transfer, "transfer"},
                                                 {point_kind::overlap, "overlap"},
                                                 {point_kind::product, "matmul"},
                                                 {point_kind::elementwise, "elementwise"},
                                                 {point_kind::sequence, "sequence"}}};

constexpr pass_kind passes[] = {pass_kind::forward, pass_kind::backward};

class plan {
 public:
  explicit plan(const measurement_request& r) : request_(r) {}

  std::vector<measured_point> run() {
    for (const auto& kernel : request_.kernels) fits() ? fit_kernel(kernel) : check_kernel(kernel);
    if (!request_.kernels.empty()) add_memory();
    for (const auto& [members, stride] : groups()) add_transfers(members, stride);
    if (request_.ranks > 1) {
      for (const auto& kernel : request_.kernels) add_overlaps(kernel);
    }
    if (!request_.kernels.empty()) add_products(request_.kernels.front());
    if (!request_.kernels.empty()) add_elementwise(request_.kernels.front());
    if (!request_.kernels.empty() && !on_host()) add_sequences();
    std::erase_if(points_, [this](const auto& p) {
      const auto kind = static_cast<point_kind>(p.index());
      return std::find(request_.kinds.begin(), request_.kinds.end(), kind) == request_.kinds.end();
    });
    return std::move(points_);
  }

 private:
  bool fits() const { return request_.set == point_set::fit; }
  bool quick() const { return request_.effort == effort_kind::quick; }
  bool on_host() const { return request_.kernels.front().on_host; }

  void add_forward(const kernel_point& p) { points_.push_back(p); }

  void add(kernel_point p) {
    for (const auto pass : passes) {
      p.pass = pass;
      points_.push_back(p);
    }
  }

  // --- Kernels ------------------------------------------------------------------------------------

  /// Blocks of every shape for one head dimension; squares alone, which need less time, for what changes them little.
  void fit_kernel(const kernel_to_measure& kernel) {
    if (kernel.on_host) return add_squares(kernel, {16, 32, 64, 96, 128, 256}, 2, 2, 64);
    const std::vector<std::int64_t> sides{1024, 4096, 16384};
    const std::vector<std::int64_t> sizes =
        quick() ? sides : std::vector<std::int64_t>{512, 1024, 2048, 4096, 8192, 16384};
    const auto& rectangles = kernel.prepares_shapes ? sides : sizes;
    for (const auto rows : rectangles) {
      for (const auto cols : rectangles) {
        if (rows != cols)
          add({.kernel = kernel.name, .heads = 32, .kv_heads = 32, .rows = rows, .cols = cols});
      }
    }
    add_squares(kernel, sizes, 32, 32, 128);
    add_squares(kernel, sizes, 32, 32, 64);
    add_squares(kernel, sizes, 32, 8, 128);
    add_squares(kernel, rectangles, 8, 8, 128);
    add_few_rows(kernel);
    if (quick()) return;
    add_squares(kernel, sizes, 64, 8, 128);
    add_squares(kernel, {1024, 4096}, 20, 20, 128);
    add_squares(kernel, {1024, 4096}, 20, 20, 64);
    for (const auto& [rows, cols] :
         {std::pair{1024, 4096}, {4096, 1024}, {4096, 16384}, {16384, 4096}})
      add({.kernel = kernel.name, .heads = 32, .kv_heads = 8, .rows = rows, .cols = cols});
  }

  void check_kernel(const kernel_to_measure& kernel) {
    if (kernel.on_host) return add_squares(kernel, {48, 192}, 2, 2, 64);
    const std::vector<std::int64_t> sizes =
        quick() ? std::vector<std::int64_t>{1664, 6400}
                : std::vector<std::int64_t>{1664, 3072, 6400, 8960, 12800};
    add_squares(kernel, sizes, 32, 32, 128);
    add_squares(kernel, sizes, 44, 11, 128);
    add_squares(kernel, sizes, 26, 26, 128);
    check_few_rows(kernel);
    if (quick()) return;
    add_squares(kernel, {3072, 8960}, 30, 5, 128);
    add_squares(kernel, {3072, 8960}, 34, 34, 64);
    for (const auto& [rows, cols] : {std::pair{1664, 8960},
                                     {8960, 1664},
                                     {3072, 12800},
                                     {12800, 3072},
                                     {6400, 8960},
                                     {7000, 3500},
                                     {1536, 19456},
                                     {19456, 1536}}) {
      add({.kernel = kernel.name, .heads = 32, .kv_heads = 32, .rows = rows, .cols = cols});
      add({.kernel = kernel.name, .heads = 28, .kv_heads = 7, .rows = rows, .cols = cols});
    }
  }

  /// Decoding over caches of every length, by one sequence and by many, and the new tokens of a prefix, many times longer.
  void add_few_rows(const kernel_to_measure& kernel) {
    const std::vector<std::int64_t> caches =
        quick() ? std::vector<std::int64_t>{8192, 65536}
                : std::vector<std::int64_t>{2048, 8192, 32768, 65536, 262144};
    for (const auto cols : caches) {
      for (const std::int64_t rows : {1, 4, 16}) {
        add_few_rows(kernel, 1, 64, 8, 128, rows, cols);
        add_few_rows(kernel, 1, 8, 1, 128, rows, cols);
      }
      add_few_rows(kernel, 16, 64, 8, 128, 1, cols);
      add_few_rows(kernel, 16, 8, 1, 128, 1, cols);
      if (!quick()) add_few_rows(kernel, 1, 32, 32, 128, 1, cols);
      if (!quick()) add_few_rows(kernel, 1, 64, 8, 64, 1, cols);
    }
    for (const std::int64_t rows : {256, 1024}) add_few_rows(kernel, 1, 32, 8, 128, rows, 65536);
  }

  void check_few_rows(const kernel_to_measure& kernel) {
    for (const std::int64_t cols : {5000, 48000, 100000}) {
      add_few_rows(kernel, 1, 32, 4, 128, 1, cols);
      add_few_rows(kernel, 6, 40, 8, 128, 1, cols);
      add_few_rows(kernel, 2, 32, 8, 128, 8, cols);
      if (!quick()) add_few_rows(kernel, 3, 16, 2, 64, 2, cols);
    }
    for (const std::int64_t rows : {400, 1600}) add_few_rows(kernel, 1, 28, 7, 128, rows, 50000);
  }

  /// Without those whose keys would take more than 2 GiB.
  void add_few_rows(const kernel_to_measure& kernel, std::int64_t batch, std::int64_t heads,
                    std::int64_t kv_heads, std::int64_t head_dim, std::int64_t rows,
                    std::int64_t cols) {
    constexpr std::int64_t most = std::int64_t{1} << 30;
    if (batch * kv_heads * head_dim * cols > most) return;
    add_forward({.kernel = kernel.name,
                 .batch = batch,
                 .heads = heads,
                 .kv_heads = kv_heads,
                 .head_dim = head_dim,
                 .rows = rows,
                 .cols = cols});
  }

  void add_squares(const kernel_to_measure& kernel, const std::vector<std::int64_t>& sizes,
                   int heads, int kv_heads, int head_dim) {
    for (const auto size : sizes) {
      for (const auto mask : {mask_kind::full, mask_kind::causal}) {
        add({.kernel = kernel.name,
             .mask = mask,
             .heads = heads,
             .kv_heads = kv_heads,
             .head_dim = head_dim,
             .rows = size,
             .cols = size});
      }
    }
  }

  std::vector<std::int64_t> memory_tokens() const {
    if (on_host())
      return fits() ? std::vector<std::int64_t>{64, 256, 1024} : std::vector<std::int64_t>{512};
    return fits() ? std::vector<std::int64_t>{256, 1024, 4096, 16384}
                  : std::vector<std::int64_t>{1664, 8960};
  }

  void add_memory() {
    for (const char* operation : {"merge", "accumulate", "cast", "delta"}) {
      for (const auto tokens : memory_tokens())
        points_.push_back(memory_point{.operation = operation, .tokens = tokens, .heads = 32});
    }
  }

  // --- Matrix products ----------------------------------------------------------------------------

  /// Of a layer's sizes, drawn from a fixed seed: tokens, and widths of models; to fit powers of two alone.
  void add_products(const kernel_to_measure& kernel) {
    const auto tokens = product_tokens(kernel.on_host), widths = product_widths(kernel.on_host);
    const std::size_t wanted = kernel.on_host ? 12 : quick() ? 40 : fits() ? 120 : 200;
    std::mt19937 random(fits() ? 1 : 3);
    const auto one_of = [&](const auto& list) { return list[random() % list.size()]; };
    std::vector<product_point> drawn;
    for (int turn = 0; drawn.size() < wanted && turn < 100 * static_cast<int>(wanted); ++turn) {
      const auto p = product_of(kernel.name, product_use(turn % 4), one_of(tokens), one_of(widths),
                                one_of(widths));
      if (is_affordable(p) && std::find(drawn.begin(), drawn.end(), p) == drawn.end())
        drawn.push_back(p);
    }
    points_.insert(points_.end(), drawn.begin(), drawn.end());
  }

  std::vector<std::int64_t> product_tokens(bool host) const {
    if (host)
      return fits() ? std::vector<std::int64_t>{64, 128, 256} : std::vector<std::int64_t>{96};
    if (fits()) return {1024, 2048, 4096, 8192, 16384, 32768};
    return {1280, 3072, 5120, 6144, 12288, 24576};
  }

  std::vector<std::int64_t> product_widths(bool host) const {
    if (host)
      return fits() ? std::vector<std::int64_t>{64, 128, 256, 512}
                    : std::vector<std::int64_t>{192, 384};
    if (fits()) return {512, 1024, 2048, 4096, 8192, 16384, 32768};
    return {640,  1280, 1536,  2560,  3072,  3584,  5120,  6144,
            7168, 9216, 11008, 12288, 13824, 14336, 20480, 28672};
  }

  /// Of a layer's product of so many tokens, inputs and outputs.
  static product_point product_of(const std::string& kernel, product_use use, std::int64_t tokens,
                                  std::int64_t inputs, std::int64_t outputs) {
    switch (use) {
      case product_use::forward:
        return {kernel, use, tokens, outputs, inputs};
      case product_use::input_gradient:
        return {kernel, use, tokens, inputs, outputs};
      default:
        return {kernel, use, outputs, inputs, tokens};
    }
  }

  /// At most 2 GiB an operand, and a tenth of a second at 500 TFLOP/s.
  static bool is_affordable(const product_point& p) {
    constexpr std::int64_t most = std::int64_t{1} << 30;
    const double operations = 2.0 * static_cast<double>(p.rows) * static_cast<double>(p.cols) *
                              static_cast<double>(p.inner);
    return p.rows * p.cols <= most / 2 && p.rows * p.inner <= most && p.inner * p.cols <= most &&
           operations < 5e13;
  }

  // --- Elementwise operations of a layer ----------------------------------------------------------

  /// On tensors of a few to many million elements; gates are as wide as an MLP, three times a model.
  void add_elementwise(const kernel_to_measure& kernel) {
    const auto rows = elementwise_rows(kernel.on_host);
    for (const auto width : elementwise_widths(kernel.on_host)) {
      for (const auto count : rows) {
        for (const auto operation :
             {elementwise_kind::norm, elementwise_kind::norm_gradient, elementwise_kind::rotation,
              elementwise_kind::gate, elementwise_kind::gate_gradient, elementwise_kind::cast}) {
          const bool gates =
              operation == elementwise_kind::gate || operation == elementwise_kind::gate_gradient;
          points_.push_back(elementwise_point{.kernel = kernel.name,
                                              .operation = operation,
                                              .rows = count,
                                              .width = gates ? 3 * width : width});
        }
      }
    }
  }

  std::vector<std::int64_t> elementwise_rows(bool host) const {
    if (host) return fits() ? std::vector<std::int64_t>{64, 512} : std::vector<std::int64_t>{192};
    if (!fits()) return {3072, 12288};
    return quick() ? std::vector<std::int64_t>{2048, 16384}
                   : std::vector<std::int64_t>{1024, 2048, 4096, 8192, 16384, 32768};
  }

  std::vector<std::int64_t> elementwise_widths(bool host) const {
    if (host) return {256};
    return fits() ? std::vector<std::int64_t>{2048, 4096, 8192}
                  : std::vector<std::int64_t>{2560, 5120, 7168};
  }

  // --- Launches ---------------------------------------------------------------------------------

  void add_sequences() {
    using enum sequence_kind;
    const int pair = std::min(request_.ranks, 2);
    for (const auto operations :
         pair == 1 ? std::vector{casts} : std::vector{casts, exchanges, both}) {
      for (const int count : fits() ? std::vector{4, 16} : std::vector{10}) {
        for (const auto start :
             {sequence_start::idle, sequence_start::graph, sequence_start::ahead}) {
          points_.push_back(sequence_point{
              .operations = operations, .members = pair, .count = count, .start = start});
        }
      }
    }
  }

  // --- Transfers ----------------------------------------------------------------------------------

  /// Rows (consecutive ranks) and columns (ranks that lie apart) of every grid.
  std::vector<std::pair<int, int>> groups() const {
    std::vector<std::pair<int, int>> list;
    for (int members = 2; members <= request_.ranks; ++members) {
      if (request_.ranks % members != 0) continue;
      list.emplace_back(members, 1);
      if (members < request_.ranks) list.emplace_back(members, request_.ranks / members);
    }
    return list;
  }

  /// To fit: the powers of two and the middles between them. To check: one in every factor of four, spread evenly over the
  /// logarithms (by the golden ratio), so that NCCL's changes of protocol are met as any user meets them.
  std::vector<std::int64_t> message_sizes() const {
    constexpr std::int64_t smallest = 1 << 10, multiple = 64;
    const auto most = request_.largest_transfer;
    std::vector<std::int64_t> sizes;
    if (fits()) {
      for (auto bytes = smallest; bytes <= most; bytes *= 2) {
        sizes.push_back(bytes);
        if (bytes + bytes / 2 <= most) sizes.push_back(bytes + bytes / 2);
      }
      return sizes;
    }
    double place = 0;
    for (auto from = smallest; from <= most; from *= 4) {
      place = std::fmod(place + std::numbers::phi, 1.0);
      const auto bytes = static_cast<std::int64_t>(static_cast<double>(from) * std::pow(4, place));
      if (bytes <= most) sizes.push_back(bytes / multiple * multiple);
    }
    return sizes;
  }

  void add_transfers(int members, int stride) {
    for (const auto bytes : message_sizes()) {
      for (const auto kind :
           {transfer_kind::send, transfer_kind::exchange, transfer_kind::all_gather,
            transfer_kind::reduce_scatter, transfer_kind::all_to_all, transfer_kind::all_reduce}) {
        points_.push_back(transfer_point{
            .operation = kind, .members = members, .stride = stride, .bytes = bytes});
      }
    }
    add_at_once(members, stride);
  }

  void add_at_once(int members, int stride) {
    for (const std::int64_t mebibytes : fits() ? std::vector{2, 32, 64} : std::vector{12, 56}) {
      const auto bytes = mebibytes << 20;
      if (2 * bytes > request_.largest_transfer) continue;
      for (const auto kind : {transfer_kind::exchange, transfer_kind::all_gather})
        points_.push_back(transfer_point{
            .operation = kind, .members = members, .stride = stride, .bytes = bytes, .at_once = 2});
      points_.push_back(transfer_point{.operation = transfer_kind::exchange,
                                       .members = members,
                                       .stride = stride,
                                       .bytes = bytes,
                                       .also = bytes / 64});
    }
  }

  // --- Both at once -------------------------------------------------------------------------------

  void add_overlaps(const kernel_to_measure& kernel) {
    const auto sizes = kernel.on_host ? std::vector<std::int64_t>{64}
                       : fits()       ? std::vector<std::int64_t>{4096, 8192}
                                      : std::vector<std::int64_t>{6400, 10240};
    const auto transfers = kernel.on_host ? std::vector<std::int64_t>{1 << 16}
                           : fits()       ? std::vector<std::int64_t>{16 << 20, 128 << 20}
                                          : std::vector<std::int64_t>{40 << 20, 112 << 20};
    const auto channels = quick() || kernel.on_host ? std::vector<int>{0}
                          : fits()                  ? std::vector<int>{0, 2, 8, 32}
                                                    : std::vector<int>{0, 3, 20};
    for (const auto size : sizes) {
      for (const auto bytes : transfers) {
        for (const auto count : channels) {
          const auto kinds = count == 0
                                 ? std::vector{transfer_kind::exchange, transfer_kind::all_gather,
                                               transfer_kind::reduce_scatter}
                                 : std::vector{transfer_kind::exchange};
          for (const auto kind : kinds) add_overlap(kernel, size, kind, bytes, count);
        }
      }
    }
  }

  void add_overlap(const kernel_to_measure& kernel, std::int64_t size, transfer_kind kind,
                   std::int64_t bytes, int channels) {
    const transfer_point transfer{
        .operation = kind, .members = request_.ranks, .channels = channels, .bytes = bytes};
    if (bytes > request_.largest_transfer) return;
    if (channels > 0 &&
        std::find(points_.begin(), points_.end(), measured_point(transfer)) == points_.end())
      points_.push_back(transfer);
    for (const auto pass : passes) {
      if (channels > 0 && pass == pass_kind::backward) continue;
      for (const auto order : {launch_order::communication_first, launch_order::compute_first}) {
        points_.push_back(overlap_point{.kernel = {.kernel = kernel.name,
                                                   .pass = pass,
                                                   .heads = kernel.on_host ? 2 : 32,
                                                   .kv_heads = kernel.on_host ? 2 : 32,
                                                   .head_dim = kernel.on_host ? 64 : 128,
                                                   .rows = size,
                                                   .cols = size},
                                        .transfer = transfer,
                                        .order = order});
      }
    }
  }

  measurement_request request_;
  std::vector<measured_point> points_;
};

}  // namespace

std::string_view name_of(point_kind kind) {
  return find_name(point_kinds, kind);
}

point_kind parse_point_kind(std::string_view text) {
  return find_value(point_kinds, text);
}

std::vector<measured_point> measurement_plan(const measurement_request& r) {
  return plan(r).run();
}

}  // namespace attnsim
