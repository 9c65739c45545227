#include "model/cost/kernel.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <tuple>

namespace attnsim {
namespace {

constexpr double usual_tile = 128;  ///< rows (forward) or columns (backward) of one thread block
/// Part of a backward tile's fixed time that is in truth its rows', in kernels of their own (delta before, the conversion
/// of dQ after). Rectangles from squares: least errors at 0.6 (cuDNN 9.19 on H200) and 0.7 (attnsim-cuda).
constexpr double row_share = 0.65;
constexpr double last_step = 0.25;   ///< part of a step over which a further one comes in
constexpr double waves_in_step = 6;  ///< after so many, thread blocks no longer end together
/// Mean tiles of a triangle that a multiprocessor waits at the end of a kernel of waves, whose blocks start in the order of their
/// rows: the longest of the last head starts when all others are nearly done, and takes two mean ones. So FlashAttention-2's laws
/// on H200 have it (device.hpp, kernel_law: uneven). Persistent kernels deal tiles out by length.
constexpr double last_tiles = 2;

/// A call as the kernel's loops see it.
struct loop_nest {
  double outer;  ///< rows forward, columns backward: cut into tiles that run in parallel
  double inner;  ///< columns forward, rows backward: every tile's loop
  double units;  ///< batch x heads
};

double group_of(const kernel_call& call) {
  return static_cast<double>(call.heads) / static_cast<double>(call.kv_heads);
}

loop_nest loops_of(const kernel_call& call) {
  const auto rows = static_cast<double>(call.rows);
  const auto cols = static_cast<double>(call.cols);
  const auto units = static_cast<double>(call.batch * call.heads);
  return call.pass == pass_kind::backward ? loop_nest{cols, rows, units}
                                          : loop_nest{rows, cols, units};
}

/// x rounded up, with a ramp in place of the jump: time stays continuous.
double steps(double x) {
  if (x <= 1) return 1;
  const double whole = std::floor(x);
  return whole + std::min(1.0, (x - whole) / last_step);
}

/// What is read with a table: the device and how the kernel fills it.
struct reading {
  const device_profile& device;
  block_scheduling scheduling;
};

/// Time of all tiles over the time of a mean one. The longest tile of a triangle is twice the mean.
double waves(const loop_nest& loops, mask_kind mask, const reading& on) {
  const double even = steps(loops.outer / usual_tile) * loops.units / on.device.multiprocessors;
  if (mask == mask_kind::causal)
    return std::max(2.0, even + (on.scheduling == block_scheduling::waves ? last_tiles : 0));
  const double in_step = std::max(0.0, 1 - even / waves_in_step);
  return even <= 1 ? 1 : even + (steps(even) - even) * in_step;
}

/// Share of the multiprocessors' time that goes into rows (columns) that exist.
double fill(const loop_nest& loops, mask_kind mask, const reading& on) {
  const double even = loops.outer / usual_tile * loops.units / on.device.multiprocessors;
  return even / waves(loops, mask, on);
}

/// What backward takes of the memory for a row of a head, whatever its columns: O and dO are read for delta, dQ is zeroed, read
/// in fp32 and written; as the time of as many pairs at 1 FLOP/s.
double row_time(const kernel_table& table, const device_profile& device) {
  constexpr double bytes_an_element = 2 + 2 + 4 + 4 + 2;
  const double bytes = bytes_an_element * static_cast<double>(table.head_dim);
  return bytes / (device.delta_efficiency * device.memory_bandwidth.value()) /
         operations_a_pair(table.pass, table.head_dim);
}

/// The last i with axis[i] <= x and a point after it. Precondition: two points, x >= the first.
std::size_t segment(const std::vector<double>& axis, double x) {
  const auto above = std::upper_bound(axis.begin() + 1, axis.end() - 1, x);
  return static_cast<std::size_t>(above - axis.begin()) - 1;
}

double log_weight(double from, double to, double x) {
  return std::log(x / from) / std::log(to / from);
}

double log_lerp(double from, double to, double weight) {
  return from * std::pow(to / from, weight);
}

/// Time of a tile's loop, from that at measured lengths. It has a fixed part (prologue, epilogue) and a part that grows
/// with its length: linear between the measured lengths. Below them the first two go on, with a fixed part of at least a
/// tile's width; above, the last rate does.
template <typename Times>
double loop_time(const std::vector<double>& lengths, const Times& time_at, double length) {
  if (length >= lengths.back()) return time_at(lengths.size() - 1) * length / lengths.back();
  if (length < lengths.front()) {
    double slope = time_at(0) / (usual_tile + lengths[0]);
    if (lengths.size() > 1)
      slope = std::clamp((time_at(1) - time_at(0)) / (lengths[1] - lengths[0]), 0.0, slope);
    return time_at(0) - slope * (lengths[0] - length);
  }
  const auto i = segment(lengths, length);
  return std::lerp(time_at(i), time_at(i + 1),
                   (length - lengths[i]) / (lengths[i + 1] - lengths[i]));
}

/// A square table gives a full device's time by the loop's length; the call fills what it can. What rows take by
/// themselves fills the device.
double rate_by_square(const kernel_table& table, const loop_nest& loops, double length,
                      mask_kind mask, const reading& on) {
  const auto& sides = table.rows;
  const auto measured = [&](std::size_t i) { return sides[i] / table.rates[i].value(); };
  const double a_row =
      table.pass == pass_kind::backward
          ? std::min(row_share * loop_time(sides, measured, 0), row_time(table, on.device))
          : 0;
  const auto of_tile = [&](std::size_t i) {
    const loop_nest square{sides[i], sides[i], table.heads_of(i)};
    return (measured(i) - a_row) * fill(square, table.mask, on);
  };
  const double tiles = loop_time(sides, of_tile, length) / fill(loops, mask, on);
  return loops.outer * length / (loops.outer * tiles + loops.inner * a_row);
}

/// A grid is read where as many tiles run in parallel, over all heads, as in the call; between its
/// rows in log space. With fewer tiles than it holds, time follows the waves; with more, the tiles. What the last tiles take is
/// in its rates.
double rate_by_grid(const kernel_table& table, const loop_nest& loops, double length,
                    mask_kind mask, const reading& on) {
  const bool transposed = table.pass == pass_kind::backward;
  const auto& outers = transposed ? table.cols : table.rows;
  const auto& lengths = transposed ? table.rows : table.cols;
  const auto units = table.heads_of(0);
  const auto rate_of = [&](std::size_t i) {
    const auto time_at = [&](std::size_t j) {
      const auto row = transposed ? j : i, col = transposed ? i : j;
      return lengths[j] / table.rates[row * table.cols.size() + col].value();
    };
    return length / loop_time(lengths, time_at, length);
  };
  const double parallel = steps(loops.outer / usual_tile) * usual_tile * loops.units / units;
  const double measured = std::clamp(parallel, outers.front(), outers.back());
  double rate = rate_of(0);
  if (outers.size() > 1) {
    const auto i = segment(outers, measured);
    rate = log_lerp(rate_of(i), rate_of(i + 1), log_weight(outers[i], outers[i + 1], measured));
  }
  const reading dealt{on.device, block_scheduling::persistent};
  const double excess = parallel < measured ? waves(loops, mask, dealt) /
                                                  waves({measured, length, units}, mask, dealt)
                                            : parallel / measured;
  return rate * loops.outer * loops.units / (measured * units * excess);
}

/// The rate under `mask`, read from a table of either mask at the same mean loop length.
double rate_by(const kernel_table& table, const loop_nest& loops, mask_kind mask,
               const reading& on) {
  const double mean = mask == mask_kind::causal ? loops.inner / 2 : loops.inner;
  const double length = table.mask == mask_kind::causal ? mean * 2 : mean;
  const double rate = table.square ? rate_by_square(table, loops, length, mask, on)
                                   : rate_by_grid(table, loops, length, mask, on);
  return std::min(rate, std::max_element(table.rates.begin(), table.rates.end())->value());
}

/// The time of a call of any head dimension from the times of the `measured` ones. Between two, linear: what the softmax
/// takes of a pair does not grow with the dimension. Below the smallest, its time by the same line, through what it and
/// the next take of a pair in long loops (`of_pair`). Above the largest, or beside the only one, at its rate.
template <typename Time, typename PairTime>
seconds time_at_head_dim(const std::set<std::int64_t>& measured, double head_dim,
                         const Time& time_at, const PairTime& of_pair) {
  const auto whole = static_cast<std::int64_t>(head_dim);
  if (measured.contains(whole) && static_cast<double>(whole) == head_dim) return time_at(whole);
  const auto ratio = [&](std::int64_t other) { return head_dim / static_cast<double>(other); };
  auto above = measured.upper_bound(whole);
  if (above == measured.end() || measured.size() == 1)
    return ratio(*measured.rbegin()) * time_at(*measured.rbegin());
  const bool below_all = above == measured.begin();
  if (below_all) ++above;
  const auto from = *std::prev(above), to = *above;
  const double way = (head_dim - static_cast<double>(from)) / static_cast<double>(to - from);
  if (!below_all) return time_at(from) + way * (time_at(to) - time_at(from));
  return std::max(ratio(from), 1 + way * (of_pair(to) / of_pair(from) - 1)) * time_at(from);
}

using table_list = std::vector<kernel_table>;

const kernel_table* table_for(const table_list& tables, pass_kind pass, mask_kind mask,
                              std::int64_t head_dim) {
  for (const auto& t : tables) {
    if (t.pass == pass && t.mask == mask && t.head_dim == head_dim) return &t;
  }
  return nullptr;
}

std::set<std::int64_t> measured_head_dims(const table_list& tables, pass_kind pass,
                                          mask_kind mask) {
  std::set<std::int64_t> found;
  for (const auto& t : tables) {
    if (t.pass == pass && t.mask == mask) found.insert(t.head_dim);
  }
  return found;
}

/// A square of that side by itself.
double rate_of_side(const kernel_table& square, double side) {
  const auto measured = [&](std::size_t i) { return square.rows[i] / square.rates[i].value(); };
  return side / loop_time(square.rows, measured, side);
}

/// A measured rate, had the heads filled the device.
double filled_rate(const kernel_table& table, std::size_t size, const reading& on) {
  const loop_nest loops{table.rows[size], table.rows[size], table.heads_of(size)};
  return table.rates[size].value() / fill(loops, table.mask, on);
}

/// How much faster triangles run than the largest measured one. What they lose to squares of their side by tiles that are half
/// idle goes with the rows; of the time of a pair it is less, the longer the side. What their last tiles lose goes with the heads
/// (fill). No call gets faster than squares of that side.
double gain_of_long_triangle(const kernel_table& triangle, const kernel_table* square, double side,
                             const reading& on) {
  const double last = triangle.rows.back();
  if (!square || !triangle.square || !square->square || side <= last) return 1;
  const double lost =
      rate_of_side(*square, last) / filled_rate(triangle, triangle.rows.size() - 1, on) - 1;
  if (lost <= 0) return 1;
  double fastest = 0;
  for (std::size_t i = 0; i < triangle.rows.size(); ++i)
    fastest = std::max(fastest, filled_rate(triangle, i, on));
  return std::max(1.0, rate_of_side(*square, side) / (1 + lost * last / side) / fastest);
}

/// Time of the whole rectangle (full) or of half of it (causal).
seconds time_of(const device_profile& device, const kernel_profile& kernel, const kernel_call& call,
                const loop_nest& loops, mask_kind mask) {
  const auto& tables = kernel.tables_of(call.dtype);
  auto measured = mask;
  auto head_dims = measured_head_dims(tables, call.pass, measured);
  if (head_dims.empty()) {
    measured = mask == mask_kind::full ? mask_kind::causal : mask_kind::full;
    head_dims = measured_head_dims(tables, call.pass, measured);
  }
  const reading on{
      device, call.pass == pass_kind::backward ? kernel.backward_scheduling : kernel.scheduling};
  const double pairs =
      loops.outer * loops.inner * loops.units * (mask == mask_kind::causal ? 0.5 : 1);
  const auto table = [&](std::int64_t head_dim) -> const kernel_table& {
    return *table_for(tables, call.pass, measured, head_dim);
  };
  return time_at_head_dim(
      head_dims, mean_head_dim(call),
      [&](std::int64_t head_dim) {
        const double gain =
            mask == mask_kind::causal && measured == mask
                ? gain_of_long_triangle(table(head_dim),
                                        table_for(tables, call.pass, mask_kind::full, head_dim),
                                        loops.inner, on)
                : 1;
        const double rate = gain * rate_by(table(head_dim), loops, mask, on);
        return flop_count(operations_a_pair(call.pass, head_dim) * pairs) /
               std::min(flop_rate(rate), device.peak(call.dtype));
      },
      [&](std::int64_t head_dim) {
        return operations_a_pair(call.pass, head_dim) / table(head_dim).rates.back().value();
      });
}

/// Linear in the visible pairs from a triangle's time to the rectangle's; with fewer pairs than a
/// triangle the loops are shorter by as much. No mask makes a call slower. `time_of`: of loops
/// under a mask.
template <typename Time>
seconds masked_time(const kernel_call& call, const loop_nest& rectangle, const Time& time_of) {
  const double visible =
      static_cast<double>(call.pairs) / static_cast<double>(call.rows * call.cols);
  auto triangle = rectangle;
  triangle.inner *= std::min(1.0, 2 * visible);
  const auto full = time_of(triangle, mask_kind::full);
  if (visible >= 1) return full;
  const auto causal = std::min(full, time_of(triangle, mask_kind::causal));
  return causal + (full - causal) * std::max(0.0, 2 * visible - 1);
}

/// A triangle as high as the loops are long, beside tiles that see nothing.
bool is_beside_nothing(const kernel_call& call, const loop_nest& loops) {
  constexpr double about = 0.02;
  const double pairs = static_cast<double>(call.pairs);
  return loops.outer > loops.inner && pairs < 0.5 * loops.outer * loops.inner &&
         std::abs(2 * pairs / (loops.inner * loops.inner) - 1) < about;
}

/// The same of a law, whose blocks go by whole rounds: tiles beside a triangle, whose loops are whole, take no less than by
/// themselves; those that see nothing take nothing, or as long as all.
template <typename Time>
seconds masked_time_by_law(const kernel_profile& kernel, const kernel_call& call,
                           const Time& time_of) {
  auto loops = loops_of(call);
  if (is_beside_nothing(call, loops)) {
    if (!kernel.skips_unseen && call.pass == pass_kind::backward)
      return time_of(loops, mask_kind::full);
    loops.outer = loops.inner;
    return time_of(loops, mask_kind::causal);
  }
  const auto time = masked_time(call, loops, time_of);
  const double beside = 2 * static_cast<double>(call.pairs) / (loops.outer * loops.inner) - 1;
  if (loops.outer <= loops.inner || beside <= 0 || beside >= 1) return time;
  loops.outer = std::max(1.0, beside * loops.outer - 1);  // the diagonal is the triangle's
  return std::max(time, time_of(loops, mask_kind::full));
}

seconds measured_time(const device_profile& device, const kernel_profile& kernel,
                      const kernel_call& call) {
  return masked_time(call, loops_of(call), [&](const loop_nest& loops, mask_kind mask) {
    return time_of(device, kernel, call, loops, mask);
  });
}

/// How many blocks, and tokens of their loops, the law's time counts.
law_terms terms_of(const kernel_law& law, loop_nest loops, mask_kind mask, double sharing,
                   int multiprocessors) {
  const double group = law.grouped ? sharing : 1;
  loops.inner = std::ceil(loops.inner / law.step) * law.step * group;
  loops.units /= group;
  const double tiles = std::ceil(loops.outer / law.tile);
  const double slots = static_cast<double>(multiprocessors) * law.slots;
  if (mask == mask_kind::full) {
    const double rounds = std::ceil(tiles * loops.units / slots);
    return {rounds, rounds * loops.inner};
  }
  const double more = law.diagonal * law.tile * group;
  const double mean = loops.inner * (tiles + 1) / (2 * tiles) + more;
  const double on_a_slot = tiles * loops.units / slots + law.uneven;
  const auto time = [&](const law_terms& t) { return t.blocks * law.block + t.tokens * law.token; };
  const auto longer = [&](const law_terms& a, const law_terms& b) {
    return time(a) > time(b) ? a : b;
  };
  const law_terms longest{1, loops.inner + more}, all{on_a_slot, on_a_slot * mean};
  if (!law.ahead || tiles * loops.units <= slots) return longer(longest, all);
  // Tiles are dealt out by length: what is left when each slot has one is as long as this share of the longest. Slots take their
  // second ones in any order, and of few heads the longest seldom meets the longest.
  const double seldom = loops.units * loops.units < slots ? 1 : 0;
  const double left = 1 - (std::floor(slots / loops.units) + seldom) / tiles;
  return longer({2, (1 + left) * loops.inner + 2 * more}, all);
}

/// Every row sees every column.
bool sees_all(const kernel_call& call) {
  return call.pairs == call.rows * call.cols;
}

/// Those of 16 bits alone.
bool has_laws(data_type type) {
  return type != data_type::fp32 && type != data_type::fp8;
}

/// Of the mask or else the other one, the nearest head dimension, the nearest sharing of K/V heads; of two with another tile the
/// first. Null without one for the pass.
const kernel_law* law_for(const kernel_profile& kernel, const kernel_call& call, mask_kind mask) {
  const kernel_law* best = nullptr;
  if (!has_laws(call.dtype)) return best;
  const auto rank = [&](const kernel_law& l) {
    return std::tuple(l.mask != mask,
                      std::abs(static_cast<double>(l.head_dim) - mean_head_dim(call)),
                      std::abs(std::log(group_of(call) / l.group)));
  };
  for (const auto& law : kernel.laws) {
    if (law.pass == call.pass && law.taken_below == 0 && (!best || rank(law) < rank(*best)))
      best = &law;
  }
  return best;
}

/// Rows (backward: columns) that the busiest multiprocessor computes.
double rows_of_all_rounds(const kernel_law& law, const kernel_call& call, int multiprocessors) {
  const auto loops = loops_of(call);
  const double units = loops.units / (law.grouped ? group_of(call) : 1);
  return std::ceil(std::ceil(loops.outer / law.tile) * units / (multiprocessors * law.slots)) *
         law.tile;
}

/// Of laws with this one's calls that differ in the tile, the one that the kernel takes.
const kernel_law* by_tile(const device_profile& device, const kernel_profile& kernel,
                          const kernel_law* first, const kernel_call& call) {
  const auto rows = [&](const kernel_law& law) {
    return rows_of_all_rounds(law, call, device.multiprocessors);
  };
  const auto smaller = std::find_if(kernel.laws.begin(), kernel.laws.end(), [&](const auto& law) {
    return law.taken_below > 0 && law.of_same_calls(*first) &&
           rows(law) < law.taken_below * rows(*first);
  });
  return smaller == kernel.laws.end() ? first : &*smaller;
}

/// Laws of the sharings of K/V heads around a call's, and how far it is from the first to the second; one twice where it has a
/// law of its own or is beyond all.
struct neighbouring_laws {
  const kernel_law* fewer;
  const kernel_law* more;
  double way = 0;

  /// Of both, linear in the logarithm of the query heads of a K/V head.
  seconds between(const auto& time_by) const {
    return time_by(*fewer) + way * (time_by(*more) - time_by(*fewer));
  }
};

neighbouring_laws laws_around(const device_profile& device, const kernel_profile& kernel,
                              const kernel_call& call, mask_kind mask) {
  const auto* nearest = law_for(kernel, call, mask);
  neighbouring_laws found{nearest, nearest};
  const auto tiled = [&](const kernel_law* law) { return by_tile(device, kernel, law, call); };
  const double group = group_of(call);
  for (const auto& law : kernel.laws) {
    if (law.pass != call.pass || law.mask != nearest->mask || law.head_dim != nearest->head_dim ||
        law.taken_below > 0)
      continue;
    if (law.group <= group && (found.fewer->group > group || law.group > found.fewer->group))
      found.fewer = &law;
    if (law.group >= group && (found.more->group < group || law.group < found.more->group))
      found.more = &law;
  }
  const bool inside = found.fewer->group < group && group < found.more->group;
  if (!inside) return {tiled(nearest), tiled(nearest)};
  return {tiled(found.fewer), tiled(found.more),
          log_weight(found.fewer->group, found.more->group, group)};
}

/// But for the start, which does not grow with the head dimension.
seconds time_by_law(const device_profile& device, const kernel_law& law, const kernel_call& call,
                    const loop_nest& loops, mask_kind mask) {
  const auto t = terms_of(law, loops, mask, group_of(call), device.multiprocessors);
  const auto rows = static_cast<double>(call.batch * call.heads * call.rows);
  return t.blocks * law.block + t.tokens * law.token + rows * law.row;
}

seconds time_by_laws(const device_profile& device, const kernel_profile& kernel,
                     const kernel_call& call) {
  std::set<std::int64_t> head_dims;
  for (const auto& law : kernel.laws) {
    if (law.pass == call.pass) head_dims.insert(law.head_dim);
  }
  return masked_time_by_law(kernel, call, [&](const auto& loops, mask_kind mask) {
    const auto laws = [&](std::int64_t head_dim) {
      auto measured = call;
      measured.head_dim = measured.v_head_dim = head_dim;
      return laws_around(device, kernel, measured, mask);
    };
    const auto working = time_at_head_dim(
        head_dims, mean_head_dim(call),
        [&](std::int64_t head_dim) {
          return laws(head_dim).between(
              [&](const auto& law) { return time_by_law(device, law, call, loops, mask); });
        },
        [&](std::int64_t head_dim) {
          const auto& law = *laws(head_dim).fewer;
          return law.token.value() / (law.tile * law.slots);
        });
    const auto around = laws_around(device, kernel, call, mask);
    return around.between([](const auto& law) { return law.start; }) + working;
  });
}

byte_count bytes_moved(const kernel_call& call) {
  const bool backward = call.pass == pass_kind::backward;
  const auto rows = call.batch * call.heads * call.rows;
  const auto cols = call.batch * call.kv_heads * call.cols;
  const auto passes = backward ? 2 : 1;  // Q, O, K and V, and their gradients
  const auto inputs = passes * (rows * call.head_dim + cols * call.stored_dims());
  const auto outputs = passes * rows * call.value_dim();
  constexpr std::int64_t log_sum_exp_bytes = 4;
  return byte_count(inputs * element_bytes(call.dtype) +
                    outputs * element_bytes(result_type(call.dtype)) + rows * log_sum_exp_bytes);
}

seconds roofline_time(const device_profile& device, const kernel_call& call) {
  return std::max(operations(call) / (device.roofline_efficiency * device.peak(call.dtype)),
                  bytes_moved(call) / (device.memory_efficiency * device.memory_bandwidth));
}

bool is_measured(const kernel_profile& kernel, const kernel_call& call) {
  const auto& tables = kernel.tables_of(call.dtype);
  return call.dtype != data_type::fp32 &&
         std::any_of(tables.begin(), tables.end(),
                     [&](const kernel_table& table) { return table.pass == call.pass; });
}

bool has_few_rows(const kernel_profile* kernel, const kernel_call& call) {
  return kernel && kernel->split.present() && call.pass == pass_kind::forward &&
         call.dtype != data_type::fp32 && call.rows < 2 * kernel->split.rows;
}

/// Blocks of a call that are not split; rows beyond a block's count in part, so that time is continuous.
double decoding_blocks(const key_split& law, const kernel_call& call) {
  const double rows = static_cast<double>(call.rows) * group_of(call);
  return static_cast<double>(call.batch * call.kv_heads) * std::max(1.0, rows / law.rows);
}

/// Keys that a row sees, on average.
double mean_columns(const kernel_call& call) {
  return call.all_pairs() / static_cast<double>(call.batch * call.rows);
}

double splits_of(const device_profile& device, const key_split& law, const kernel_call& call) {
  const double room = std::max(1.0, device.multiprocessors / decoding_blocks(law, call));
  return std::clamp(mean_columns(call) / law.least, 1.0, room);
}

seconds split_time(const device_profile& device, const kernel_profile& kernel,
                   const kernel_call& call) {
  const auto& law = kernel.split;
  const double blocks = decoding_blocks(law, call), splits = splits_of(device, law, call);
  const double filled = std::min(1.0, blocks * splits / device.multiprocessors);
  const double tokens = blocks * mean_columns(call);
  const auto of_token = call.stored_dims() * element_bytes(call.dtype);
  const double read = tokens * static_cast<double>(of_token);
  const double reached = law.efficiency * std::min(1.0, filled / law.filling);
  const flop_count whole(operations_a_pair(call.pass, call.head_dim, call.value_dim()) * tokens *
                         law.rows);
  const auto rate = highest_rate(device, &kernel, call.dtype, call.pass);
  const double partial = splits * static_cast<double>(call.batch * call.heads * call.rows *
                                                      (call.value_dim() + 1) * 4);
  const double bytes_per_s = device.memory_bandwidth.value();
  return std::max(seconds(read / (reached * bytes_per_s)), whole / rate / filled) + law.combine +
         seconds(2 * partial / (device.memory_efficiency * bytes_per_s));
}

/// Nobody has published rates of backward passes in fp8: they are taken to be as much faster than in 16 bits as forward is. None
/// where these are not measured.
std::optional<double> gain_of_fp8(const device_profile& device, const kernel_profile* kernel,
                                  data_type dtype, pass_kind pass) {
  if (!kernel || dtype != data_type::fp8 || pass != pass_kind::backward) return {};
  const auto measured = [&](data_type type, pass_kind of) {
    return is_measured(*kernel, {.pass = of, .dtype = type});
  };
  const bool has_law = law_for(*kernel, {.pass = pass}, mask_kind::full) != nullptr;
  if (measured(dtype, pass) || !measured(dtype, pass_kind::forward) ||
      !(has_law || measured(data_type::bf16, pass)))
    return {};
  return highest_rate(device, kernel, dtype, pass_kind::forward) /
         highest_rate(device, kernel, data_type::bf16, pass_kind::forward);
}

bool is_ragged(const kernel_call& call) {
  constexpr std::int64_t keys = 128;  // of a tile
  return call.pass == pass_kind::forward && sees_all(call) && call.cols % keys != 0;
}

seconds busy_time(const device_profile& device, const kernel_profile* kernel,
                  const kernel_call& call, run_start start) {
  if (const auto gain = gain_of_fp8(device, kernel, call.dtype, call.pass)) {
    auto half = call;
    half.dtype = data_type::bf16;
    return std::max(operations(call) / device.peak(call.dtype),
                    busy_time(device, kernel, half, start) / *gain);
  }
  const bool has_law = kernel && law_for(*kernel, call, mask_kind::full);
  if (!has_law && !(kernel && is_measured(*kernel, call))) return roofline_time(device, call);
  const auto warm =
      has_law ? time_by_laws(device, *kernel, call) : measured_time(device, *kernel, call);
  const double slower = (is_ragged(call) ? kernel->ragged : 1) /
                        (start == run_start::in_sequence ? 1 : kernel->boost);
  const auto whole = std::max(operations(call) / device.peak(call.dtype), slower * warm);
  if (!has_few_rows(kernel, call)) return whole;
  const auto split = split_time(device, *kernel, call);
  const double more = static_cast<double>(call.rows) / kernel->split.rows - 1;
  return split < whole ? split * std::pow(whole / split, std::max(0.0, more)) : whole;
}

/// Of blocks that never wait for each other.
flop_rate highest_rate(const device_profile& device, const kernel_law& law) {
  if (law.token <= seconds()) return device.peak_half;
  const auto per_pair = operations_a_pair(law.pass, law.head_dim);
  return flop_count(device.multiprocessors * law.slots * law.tile * per_pair) / law.token;
}

}  // namespace

law_terms law_terms_of(const kernel_law& law, const kernel_call& call, int multiprocessors) {
  return terms_of(law, loops_of(call), law.mask, group_of(call), multiprocessors);
}

const kernel_law* law_taken(const device_profile& device, const kernel_profile& kernel,
                            const kernel_call& call) {
  const auto mask = sees_all(call) ? mask_kind::full : mask_kind::causal;
  const auto* first = law_for(kernel, call, mask);
  return first ? by_tile(device, kernel, first, call) : nullptr;
}

double operations_a_pair(pass_kind pass, std::int64_t head_dim) {
  return operations_a_pair(pass, head_dim, head_dim);
}

double operations_a_pair(pass_kind pass, std::int64_t head_dim, std::int64_t value_dim) {
  const bool backward = pass == pass_kind::backward;
  const auto of_keys = (backward ? 6 : 2) * head_dim, of_values = (backward ? 4 : 2) * value_dim;
  return static_cast<double>(of_keys + of_values);
}

double mean_head_dim(const kernel_call& call) {
  return operations_a_pair(call.pass, call.head_dim, call.value_dim()) /
         operations_a_pair(call.pass, 1);
}

flop_count operations(const kernel_call& call) {
  return flop_count(operations_a_pair(call.pass, call.head_dim, call.value_dim()) *
                    static_cast<double>(call.heads) * call.all_pairs());
}

double kernel_uncertainty(const device_profile& device, const kernel_profile* kernel,
                          const kernel_call& call) {
  const bool own = has_few_rows(kernel, call) && kernel->split.uncertainty > 0;
  return own ? kernel->split.uncertainty : device.uncertainty.compute;
}

double key_splits(const device_profile& device, const kernel_profile* kernel,
                  const kernel_call& call) {
  return has_few_rows(kernel, call) ? splits_of(device, kernel->split, call) : 1;
}

double kernel_parts(const device_profile& device, const kernel_profile* kernel,
                    const kernel_call& call) {
  const auto* law = kernel ? law_for(*kernel, call, mask_kind::full) : nullptr;
  if (!law) return 1;
  law = by_tile(device, *kernel, law, call);
  const auto scheduling =
      call.pass == pass_kind::backward ? kernel->backward_scheduling : kernel->scheduling;
  if (scheduling == block_scheduling::persistent) return 1;
  const auto loops = loops_of(call);
  const double units = loops.units / (law->grouped ? group_of(call) : 1);
  const double waves = std::ceil(loops.outer / law->tile) * units /
                       (static_cast<double>(device.multiprocessors) * law->slots);
  const bool alike = sees_all(call);  // then the last wave takes as long as any
  return std::max(1.0, alike ? std::ceil(waves) : waves);
}

seconds call_launch(const kernel_profile* kernel, const kernel_call& call, std::int64_t requests) {
  if (!kernel || call.pairs <= 0) return {};
  if (call.pass == pass_kind::backward) return kernel->host.backward;
  if (!has_few_rows(kernel, call)) return kernel->host.forward;
  return kernel->host.few_rows + static_cast<double>(requests - 1) * kernel->host.request;
}

seconds kernel_time(const device_profile& device, const kernel_profile* kernel,
                    const kernel_call& call, run_start start) {
  if (call.pairs <= 0) return {};
  return device.kernel_launch + busy_time(device, kernel, call, start);
}

namespace {

/// Whether a table or law of one head dimension is read for another: it is the nearest on its side of all that are measured.
template <typename Measured>
bool is_read_for(const Measured& one, const std::vector<Measured>& all, double head_dim) {
  const auto own = static_cast<double>(one.head_dim);
  return std::none_of(all.begin(), all.end(), [&](const Measured& other) {
    const auto d = static_cast<double>(other.head_dim);
    return other.pass == one.pass && other.mask == one.mask &&
           (own < head_dim ? d > own && d <= head_dim : own > head_dim && d < own && d >= head_dim);
  });
}

}  // namespace

flop_rate highest_rate(const device_profile& device, const kernel_profile* kernel, data_type dtype,
                       pass_kind pass, double head_dim) {
  if (!kernel || dtype == data_type::fp32) return highest_rate(device, kernel, dtype, pass);
  if (const auto gain = gain_of_fp8(device, kernel, dtype, pass)) {
    return std::min(device.peak(dtype),
                    highest_rate(device, kernel, data_type::bf16, pass, head_dim) * *gain);
  }
  auto near = *kernel;
  const auto& tables = kernel->tables_of(dtype);
  std::erase_if(dtype == data_type::fp8 ? near.fp8.tables : near.tables,
                [&](const auto& one) { return !is_read_for(one, tables, head_dim); });
  std::erase_if(near.laws,
                [&](const auto& one) { return !is_read_for(one, kernel->laws, head_dim); });
  return highest_rate(device, &near, dtype, pass);
}

flop_rate highest_rate(const device_profile& device, const kernel_profile* kernel, data_type dtype,
                       pass_kind pass) {
  if (const auto gain = gain_of_fp8(device, kernel, dtype, pass)) {
    return std::min(device.peak(dtype),
                    highest_rate(device, kernel, data_type::bf16, pass) * *gain);
  }
  flop_rate measured;
  if (kernel && dtype != data_type::fp32) {
    for (const auto& table : kernel->tables_of(dtype)) {
      for (const auto rate : table.rates) {
        if (table.pass == pass) measured = std::max(measured, rate);
      }
    }
    for (const auto& law : kernel->laws) {
      if (has_laws(dtype) && law.pass == pass)
        measured = std::max(measured, highest_rate(device, law));
    }
  }
  const auto peak = device.peak(dtype);
  return measured > flop_rate() ? std::min(measured, peak) : device.roofline_efficiency * peak;
}

}  // namespace attnsim
