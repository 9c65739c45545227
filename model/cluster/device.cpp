#include "model/cluster/device.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "model/config.hpp"
#include "model/error.hpp"
#include "model/named.hpp"
#include "model/spelling.hpp"

namespace attnsim {
namespace {

constexpr name_table<link_kind, 4> link_kinds{{
    {link_kind::nvlink, "nvlink"},
    {link_kind::pcie, "pcie"},
    {link_kind::host_memory, "host-memory"},
    {link_kind::network, "network"},
}};
constexpr name_table<basis, 3> bases{{
    {basis::assumed, "assumed"},
    {basis::published, "published"},
    {basis::measured, "measured"},
}};
constexpr name_table<block_scheduling, 2> block_schedulings{{
    {block_scheduling::persistent, "persistent"},
    {block_scheduling::waves, "waves"},
}};
constexpr name_table<elementwise_kind, elementwise_kinds> elementwise_names{{
    {elementwise_kind::plain, "plain"},
    {elementwise_kind::norm, "norm"},
    {elementwise_kind::norm_gradient, "norm_gradient"},
    {elementwise_kind::rotation, "rotation"},
    {elementwise_kind::gate, "gate"},
    {elementwise_kind::gate_gradient, "gate_gradient"},
    {elementwise_kind::cast, "cast"},
}};
constexpr name_table<pass_kind, 2> measured_passes{{
    {pass_kind::forward, "forward"},
    {pass_kind::backward, "backward"},
}};

basis read_basis(const config_node& node, basis otherwise = basis::assumed) {
  return node.has("basis") ? node.get_as("basis", parse_basis) : otherwise;
}

double read_share(const config_node& node, std::string_view key, double fallback) {
  const auto share = node.get<double>(key, fallback);
  if (share <= 0 || share > 1) node.fail(key, "expected a share above 0 and at most 1");
  return share;
}

double read_factor(const config_node& node, std::string_view key) {
  const auto factor = node.get<double>(key, 1);
  if (factor < 1) node.fail(key, "expected a factor of at least 1");
  return factor;
}

std::vector<double> read_sizes(const config_node& table, std::string_view key) {
  std::vector<double> sizes;
  for (const auto& item : table.at(key).items()) {
    const auto size = item.as<std::int64_t>();
    if (size < 1 || (!sizes.empty() && static_cast<double>(size) <= sizes.back())) {
      item.fail("", "expected ascending sizes of at least 1");
    }
    sizes.push_back(static_cast<double>(size));
  }
  if (sizes.empty()) table.fail(key, "expected at least one size");
  return sizes;
}

message_ramp read_ramp(const config_node& node, std::string_view key, message_ramp otherwise) {
  if (!node.has(key)) return otherwise;
  const auto ramp = node.at(key);
  ramp.allow_only({"bytes", "us"});
  const auto sizes = read_sizes(ramp, "bytes");
  const auto times = ramp.at("us").items();
  if (times.size() != sizes.size())
    ramp.fail("us",
              fmt::format("expected {} times, one a size, got {}", sizes.size(), times.size()));
  std::vector<message_ramp::point> points;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    points.push_back({sizes[i], seconds(times[i].as<double>() * 1e-6)});
  return message_ramp(std::move(points));
}

/// A ring of two, of the transport for rings of many.
std::shared_ptr<const transport_profile> read_pair(const config_node& node,
                                                   transport_profile transport) {
  node.allow_only({"basis", "collective_efficiency", "all_reduce_efficiency", "collective_latency",
                   "collective_ramp", "all_reduce_ramp"});
  const bool own_rate = node.has("collective_efficiency"), own_ramp = node.has("collective_ramp");
  auto& t = transport;
  t.basis = read_basis(node, t.basis);
  t.collective_efficiency = read_share(node, "collective_efficiency", t.collective_efficiency);
  t.all_reduce_efficiency = read_share(
      node, "all_reduce_efficiency", own_rate ? t.collective_efficiency : t.all_reduce_efficiency);
  t.collective_latency = node.get<seconds>("collective_latency", t.collective_latency);
  t.collective_ramp = read_ramp(node, "collective_ramp", t.collective_ramp);
  t.all_reduce_ramp =
      read_ramp(node, "all_reduce_ramp", own_ramp ? t.collective_ramp : t.all_reduce_ramp);
  return std::make_shared<const transport_profile>(std::move(t));
}

transport_profile read_transport(const config_node& node, int multiprocessors) {
  node.allow_only({"basis",
                   "efficiency",
                   "one_way_efficiency",
                   "collective_efficiency",
                   "all_reduce_efficiency",
                   "crowding",
                   "shared_efficiency",
                   "collective_shared_efficiency",
                   "message_share",
                   "share_spread",
                   "latency",
                   "collective_latency",
                   "step_latency",
                   "ramp",
                   "one_way_ramp",
                   "collective_ramp",
                   "all_reduce_ramp",
                   "channels",
                   "channel_bandwidth",
                   "slowdown",
                   "uncertainty",
                   "several_peers",
                   "wake",
                   "run_ahead",
                   "pair"});
  transport_profile transport;
  transport.basis = read_basis(node);
  transport.efficiency = read_share(node, "efficiency", 1);
  transport.one_way_efficiency = read_share(node, "one_way_efficiency", transport.efficiency);
  transport.crowding = node.get<double>("crowding", 0);
  if (transport.crowding < 0 || transport.crowding > 2)
    node.fail("crowding", "expected an exponent from 0 to 2");
  transport.collective_efficiency = read_share(node, "collective_efficiency", transport.efficiency);
  transport.all_reduce_efficiency =
      read_share(node, "all_reduce_efficiency", transport.collective_efficiency);
  if (node.has("shared_efficiency"))
    transport.shared_efficiency = read_share(node, "shared_efficiency", 1);
  transport.collective_shared_efficiency = transport.shared_efficiency;
  if (node.has("collective_shared_efficiency"))
    transport.collective_shared_efficiency = read_share(node, "collective_shared_efficiency", 1);
  transport.message_share = read_share(node, "message_share", 1);
  transport.share_spread = node.get<double>("share_spread", 0);
  if (!(transport.share_spread >= 0 && transport.share_spread <= 2))
    node.fail("share_spread", "expected a standard deviation from 0 to 2");
  transport.wake = node.get<seconds>("wake", {});
  transport.run_ahead = node.get<byte_count>("run_ahead", {});
  transport.latency = node.get<seconds>("latency", {});
  transport.collective_latency = node.get<seconds>("collective_latency", {});
  transport.step_latency = node.get<seconds>("step_latency", {});
  transport.ramp = read_ramp(node, "ramp", {});
  transport.one_way_ramp = read_ramp(node, "one_way_ramp", transport.ramp);
  transport.collective_ramp = read_ramp(node, "collective_ramp", transport.ramp);
  transport.all_reduce_ramp = read_ramp(node, "all_reduce_ramp", transport.collective_ramp);
  if (node.has("channels")) transport.channels = node.get_within("channels", 0, multiprocessors);
  transport.channel_bandwidth = node.get<bandwidth>("channel_bandwidth", {});
  if (node.has("slowdown")) transport.slowdown = read_factor(node, "slowdown");
  if (node.has("uncertainty")) transport.uncertainty = read_share(node, "uncertainty", 1);
  if (node.has("several_peers")) transport.several_peers = read_share(node, "several_peers", 1);
  if (node.has("pair")) transport.pair = read_pair(node.at("pair"), transport);
  return transport;
}

/// Appends a list of `count` rates.
void read_rates(const config_node& list, std::size_t count, flop_rate peak,
                std::vector<flop_rate>& rates) {
  const auto items = list.items();
  if (items.size() != count) {
    list.fail("", fmt::format("expected {} rates, one a size, got {}", count, items.size()));
  }
  for (const auto& item : items) {
    const auto tflops = item.as<double>();
    if (tflops <= 0) item.fail("", "expected more than zero");
    if (tflops * 1e12 > peak.value()) {
      item.fail("", fmt::format("expected at most the device's peak, {}", to_string(peak)));
    }
    rates.push_back(flop_rate(tflops * 1e12));
  }
}

/// One number, or one a size of a square table.
std::vector<std::int64_t> read_heads(const config_node& node, std::size_t sizes, bool square) {
  if (!node.has("heads") || !node.at("heads").is_sequence()) return {node.get_integer("heads", 1)};
  const auto items = node.at("heads").items();
  if (!square || items.size() != sizes)
    node.at("heads").fail("", fmt::format("expected one number{}",
                                          square ? fmt::format(", or {}, one a size", sizes) : ""));
  std::vector<std::int64_t> heads;
  for (const auto& item : items) {
    heads.push_back(item.as<std::int64_t>());
    if (heads.back() < 1) item.fail("", "expected at least 1");
  }
  return heads;
}

kernel_table read_table(const config_node& node, flop_rate peak) {
  node.allow_only({"pass", "mask", "head_dim", "heads", "square", "rows", "cols", "tflops"});
  kernel_table table;
  table.pass = node.get_as("pass", [](auto text) { return find_value(measured_passes, text); });
  table.mask = node.get_as("mask", parse_mask);
  table.head_dim = node.get_integer("head_dim", 1);
  table.square = node.has("square");
  if (table.square && (node.has("rows") || node.has("cols"))) {
    node.fail("square", "expected either square, or rows and cols");
  }
  table.rows = read_sizes(node, table.square ? "square" : "rows");
  table.cols = table.square ? table.rows : read_sizes(node, "cols");
  table.heads = read_heads(node, table.rows.size(), table.square);
  const auto rates = node.at("tflops");
  if (table.square) {
    read_rates(rates, table.rows.size(), peak, table.rates);
    return table;
  }
  const auto lists = rates.items();
  if (lists.size() != table.rows.size()) {
    rates.fail("", fmt::format("expected {} lists of rates, one a row size, got {}",
                               table.rows.size(), lists.size()));
  }
  for (const auto& list : lists) read_rates(list, table.cols.size(), peak, table.rates);
  return table;
}

kernel_law read_law(const config_node& node) {
  node.allow_only({"pass", "head_dim", "mask", "group", "tile", "step", "slots", "grouped", "start",
                   "block", "token", "row", "uneven", "ahead", "diagonal", "taken_below"});
  constexpr int most_tokens = 4096, most_slots = 32;
  return {.pass = node.get_as("pass", [](auto text) { return find_value(measured_passes, text); }),
          .head_dim = node.get_integer("head_dim", 1),
          .mask = node.get_as("mask", parse_mask),
          .group = node.has("group") ? node.get_within("group", 1, most_tokens) : 1,
          .tile = node.get_within("tile", 1, most_tokens),
          .step = node.has("step") ? node.get_within("step", 1, most_tokens) : 1,
          .slots = node.has("slots") ? node.get_within("slots", 1, most_slots) : 1,
          .grouped = node.get<bool>("grouped", false),
          .start = node.get<seconds>("start", {}),
          .block = node.get<seconds>("block", {}),
          .token = node.get<seconds>("token"),
          .row = node.get<seconds>("row", {}),
          .uneven = node.get<double>("uneven", 0.5),
          .ahead = node.get<bool>("ahead", false),
          .diagonal = node.get<double>("diagonal", 0),
          .taken_below = node.has("taken_below") ? read_share(node, "taken_below", 1) : 0};
}

std::vector<kernel_law> read_laws(const config_node& list) {
  const auto items = list.items();
  std::vector<kernel_law> laws;
  for (const auto& item : items) laws.push_back(read_law(item));
  for (std::size_t i = 0; i < laws.size(); ++i) {
    const auto& law = laws[i];
    const auto is_other = [&](const auto& other) {
      return other.taken_below == 0 && other.of_same_calls(law);
    };
    if (law.taken_below > 0 && std::none_of(laws.begin(), laws.end(), is_other))
      items[i].fail("taken_below",
                    "expected a law of the same calls with the other tile beside it");
  }
  return laws;
}

void read_scheduling(const config_node& node, kernel_profile& kernel) {
  if (!node.has("occupancy")) return;
  const auto read = [](const config_node& from, std::string_view key) {
    return from.get_as(key, [](auto text) { return find_value(block_schedulings, text); });
  };
  if (const auto both = node.at("occupancy"); both.is_map()) {
    both.allow_only({"forward", "backward"});
    kernel.scheduling = read(both, "forward");
    kernel.backward_scheduling = read(both, "backward");
  } else {
    kernel.scheduling = kernel.backward_scheduling = read(node, "occupancy");
  }
}

key_split read_split(const config_node& node) {
  node.allow_only({"efficiency", "rows", "least", "filling", "combine", "uncertainty", "assumed"});
  constexpr int most_rows = 1024, most_keys = 1 << 20;
  return {.efficiency = read_share(node, "efficiency", 1),
          .rows = node.get_within("rows", 1, most_rows),
          .least = node.get_within("least", 1, most_keys),
          .filling = read_share(node, "filling", 1),
          .combine = node.get<seconds>("combine", {}),
          .uncertainty = node.get<double>("uncertainty", 0),
          .assumed = node.has("assumed") ? node.get_text("assumed") : ""};
}

call_launches read_call_launches(const config_node& node) {
  node.allow_only({"forward", "backward", "few_rows", "request"});
  const auto forward = node.get<seconds>("forward", {});
  return {.forward = forward,
          .backward = node.get<seconds>("backward", forward),
          .few_rows = node.get<seconds>("few_rows", forward),
          .request = node.get<seconds>("request", {})};
}

kernel_profile::fp8_rates read_fp8(const config_node& node, flop_rate peak) {
  node.allow_only({"basis", "source", "tables"});
  if (peak <= flop_rate()) node.fail("", "expected a device with an fp8 peak");
  kernel_profile::fp8_rates rates{
      .basis = read_basis(node), .source = node.get_text("source"), .tables = {}};
  for (const auto& table : node.at("tables").items())
    rates.tables.push_back(read_table(table, peak));
  return rates;
}

kernel_power read_kernel_power(const config_node& node) {
  node.allow_only({"forward", "backward"});
  return {.forward = node.get<watts>("forward"), .backward = node.get<watts>("backward")};
}

kernel_profile read_kernel(const config_node& node, flop_rate peak, flop_rate fp8_peak) {
  node.allow_only({"name", "source", "basis", "occupancy", "boost", "ragged", "skips_unseen",
                   "staircase", "key_split", "host", "power", "laws", "tables", "fp8"});
  kernel_profile kernel;
  kernel.name = node.get<std::string>("name");
  kernel.source = node.get_text("source");
  kernel.basis = read_basis(node);
  read_scheduling(node, kernel);
  kernel.boost = read_factor(node, "boost");
  kernel.ragged = read_factor(node, "ragged");
  kernel.skips_unseen = node.get<bool>("skips_unseen", true);
  kernel.staircase = node.get<bool>("staircase", false);
  if (node.has("key_split")) kernel.split = read_split(node.at("key_split"));
  if (node.has("host")) kernel.host = read_call_launches(node.at("host"));
  if (node.has("power")) kernel.power = read_kernel_power(node.at("power"));
  if (node.has("laws")) kernel.laws = read_laws(node.at("laws"));
  if (node.has("fp8")) kernel.fp8 = read_fp8(node.at("fp8"), fp8_peak);
  const bool needs_tables = kernel.laws.empty() && kernel.fp8.tables.empty();
  if (needs_tables || node.has("tables")) {
    for (const auto& table : node.at("tables").items())
      kernel.tables.push_back(read_table(table, peak));
  }
  return kernel;
}

void read_kernels(const config_node& list, device_profile& device) {
  const auto peak = std::max(device.peak_half, device.peak_fp32);
  for (const auto& item : list.items()) {
    auto kernel = read_kernel(item, peak, device.peak_fp8);
    const auto names = names_in(device.kernels);
    if (std::find(names.begin(), names.end(), kernel.name) != names.end()) {
      item.fail("name", "expected a name that no other kernel has");
    }
    device.kernels.push_back(std::move(kernel));
  }
}

void read_transports(const config_node& node, device_profile& device) {
  node.allow_only({"nvlink", "pcie", "host-memory", "network"});
  for (const auto& [kind, name] : link_kinds) {
    if (!node.has(name)) continue;
    device.transports[static_cast<int>(kind)] =
        read_transport(node.at(name), device.multiprocessors);
  }
  if (!node.has("host-memory"))
    device.transports[static_cast<int>(link_kind::host_memory)] = device.transport(link_kind::pcie);
}

idle_start_profile read_idle_start(const config_node& node) {
  node.allow_only({"launch", "launch_communication", "next", "next_communication", "call",
                   "graph_launch", "gap", "gap_communication", "sustained_after", "sustained",
                   "uncertainty"});
  const auto launch = node.get<seconds>("launch", {});
  const auto launch_communication = node.get<seconds>("launch_communication", {});
  return {.launch = launch,
          .launch_communication = launch_communication,
          .next = node.get<seconds>("next", launch),
          .next_communication = node.get<seconds>("next_communication", launch_communication),
          .call = node.get<seconds>("call", {}),
          .graph_launch = node.get<seconds>("graph_launch", {}),
          .gap = node.get<seconds>("gap", {}),
          .gap_communication = node.get<seconds>("gap_communication", {}),
          .sustained_after = node.get<seconds>("sustained_after", {}),
          .sustained = node.has("sustained") ? read_share(node, "sustained", 1) : 0,
          .uncertainty = node.has("uncertainty") ? read_share(node, "uncertainty", 1) : 0};
}

uncertainty_profile read_uncertainty(const config_node& node) {
  node.allow_only({"compute", "sustained", "memory", "overlap", "communication"});
  return {.compute = read_share(node, "compute", 1),
          .sustained = node.has("sustained") ? read_share(node, "sustained", 1) : 0,
          .memory = node.has("memory") ? read_share(node, "memory", 1) : 0,
          .overlap = node.has("overlap") ? read_share(node, "overlap", 1) : 0,
          .communication = read_share(node, "communication", 1)};
}

void read_memory(const config_node& node, device_profile& device) {
  node.allow_only(
      {"capacity", "bandwidth", "efficiency", "delta_efficiency", "cache", "cache_bandwidth"});
  device.memory = node.get<byte_count>("capacity");
  device.memory_bandwidth = node.get<bandwidth>("bandwidth");
  device.memory_efficiency = read_share(node, "efficiency", 1);
  device.delta_efficiency = read_share(node, "delta_efficiency", device.memory_efficiency);
  if (node.has("cache")) {
    device.cache = node.get<byte_count>("cache");
    device.cache_bandwidth = node.get<bandwidth>("cache_bandwidth");
  }
}

void read_peak(const config_node& node, device_profile& device) {
  node.allow_only({"half", "fp32", "fp8"});
  device.peak_half = node.get<flop_rate>("half");
  device.peak_fp32 = node.get<flop_rate>("fp32");
  device.peak_fp8 = node.get<flop_rate>("fp8", {});
}

matmul_profile read_matmul(const config_node& node) {
  constexpr int most_tokens = 4096;
  node.allow_only({"half", "fp8", "tile", "depth", "boost", "boost_time", "assumed"});
  matmul_profile m;
  m.half = read_share(node, "half", m.half);
  m.fp8 = read_share(node, "fp8", m.fp8);
  if (node.has("tile")) {
    const auto tile = node.at("tile").items();
    if (tile.size() != 2) node.fail("tile", "expected rows and columns, such as [128, 256]");
    const auto size = [&](const config_node& item) {
      const auto tokens = item.as<std::int64_t>();
      if (tokens < 1 || tokens > most_tokens)
        item.fail("", fmt::format("expected a whole number from 1 to {}", most_tokens));
      return static_cast<int>(tokens);
    };
    m.rows = size(tile[0]);
    m.cols = size(tile[1]);
  }
  m.depth = node.get<double>("depth", 0);
  if (m.depth < 0) node.fail("depth", "expected at least 0");
  m.boost = read_factor(node, "boost");
  m.boost_time = node.get<seconds>("boost_time", {});
  m.assumed = node.get<std::string>("assumed", "");
  return m;
}

power_profile read_power(const config_node& node) {
  node.allow_only({"limit", "idle", "brake", "products", "memory"});
  const power_profile p{.limit = node.get<watts>("limit"),
                        .idle = node.get<watts>("idle"),
                        .brake = node.get<watts>("brake"),
                        .products = node.get<watts>("products"),
                        .memory = node.get<watts>("memory")};
  if (p.idle >= p.limit) node.fail("idle", "expected less than the limit");
  if (p.memory >= p.limit) node.fail("memory", "expected less than the limit");
  if (p.brake < p.limit) node.fail("brake", "expected at least the limit");
  return p;
}

void read_elementwise(const config_node& node, device_profile& device) {
  std::vector<std::string_view> names;
  for (const auto& [kind, name] : elementwise_names) names.push_back(name);
  node.allow_only(names);
  for (const auto& [kind, name] : elementwise_names) {
    if (!node.has(name)) continue;
    const auto one = node.at(name);
    one.allow_only({"efficiency", "start", "eager"});
    device.elementwise[static_cast<int>(kind)] = {
        .efficiency = read_share(one, "efficiency", 1),
        .start = one.get<seconds>("start", {}),
        .eager = one.has("eager") ? read_share(one, "eager", 1) : 0};
  }
}

/// The numbers of "cudnn-9.19": 9, 19; none without a version.
std::vector<int> version_of(std::string_view kernel) {
  std::vector<int> numbers;
  for (const char c : kernel.substr(unversioned(kernel).size())) {
    if (c == '-' || c == '.') {
      numbers.push_back(0);
    } else {
      numbers.back() = 10 * numbers.back() + (c - '0');
    }
  }
  return numbers;
}

}  // namespace

std::string_view name_of(basis b) {
  return find_name(bases, b);
}
basis parse_basis(std::string_view text) {
  return find_value(bases, text);
}

std::string_view name_of(elementwise_kind kind) {
  return find_name(elementwise_names, kind);
}
elementwise_kind parse_elementwise(std::string_view text) {
  return find_value(elementwise_names, text);
}

std::string_view name_of(link_kind kind) {
  return find_name(link_kinds, kind);
}
link_kind parse_link_kind(std::string_view text) {
  return find_value(link_kinds, text);
}

seconds message_ramp::of(double bytes) const {
  const auto known = points();
  if (known.empty()) return {};
  const auto above =
      std::find_if(known.begin(), known.end(), [&](const point& p) { return p.bytes >= bytes; });
  if (above == known.end()) return known.back().time;
  if (above == known.begin()) return above->time;
  const auto below = std::prev(above);
  return below->time +
         (bytes - below->bytes) / (above->bytes - below->bytes) * (above->time - below->time);
}

std::span<const message_ramp::point> message_ramp::points() const {
  return points_ ? std::span<const point>(*points_) : std::span<const point>();
}

double transport_profile::limited(double share, bandwidth link) const {
  if (channel_bandwidth == bandwidth() || channels == 0) return share;
  return std::min(share, static_cast<double>(channels) * channel_bandwidth.value() / link.value());
}

seconds device_profile::memory_time(byte_count traffic, int calls) const {
  const auto far = beyond_cache(traffic), near = traffic - far;
  return calls * kernel_launch + far / (memory_bandwidth * memory_efficiency) +
         (near > byte_count() ? near / cache_bandwidth : seconds());
}

seconds device_profile::slow_copy_time(byte_count traffic, int calls, double share) const {
  return calls * kernel_launch + traffic / (share * memory_efficiency * memory_bandwidth);
}

byte_count device_profile::beyond_cache(byte_count traffic) const {
  if (traffic <= cache) return {};
  return std::min(traffic, (traffic - cache) * 2);
}

seconds device_profile::eager_time(elementwise_kind kind, byte_count traffic) const {
  const auto& rate = elementwise[static_cast<int>(kind)];
  if (rate.eager == 0) return elementwise_time(elementwise_kind::plain, traffic);
  return kernel_launch + traffic / (rate.eager * memory_bandwidth);
}

seconds device_profile::elementwise_time(elementwise_kind kind, byte_count traffic) const {
  const auto& rate = elementwise[static_cast<int>(kind)];
  if (rate.efficiency == 0) return memory_time(traffic);
  return rate.start + traffic / (memory_bandwidth * rate.efficiency);
}
seconds device_profile::delta_time(byte_count traffic) const {
  return kernel_launch + traffic / (memory_bandwidth * delta_efficiency);
}

std::string_view unversioned(std::string_view kernel) {
  const auto dash = kernel.rfind('-');
  const bool has_version = dash != std::string_view::npos && dash + 1 < kernel.size() &&
                           kernel.find_first_not_of("0123456789.", dash + 1) == kernel.npos;
  return has_version ? kernel.substr(0, dash) : kernel;
}

const kernel_profile* device_profile::find_kernel(const std::string& wanted) const {
  const kernel_profile* newest = nullptr;
  for (const auto& candidate : kernels) {
    if (candidate.name == wanted) return &candidate;
    if (unversioned(candidate.name) == wanted &&
        (!newest || version_of(newest->name) < version_of(candidate.name)))
      newest = &candidate;
  }
  return newest;
}

namespace {

const kernel_profile* first_with_rates(const std::vector<kernel_profile>& kernels, data_type type) {
  const auto found = std::find_if(kernels.begin(), kernels.end(),
                                  [&](const kernel_profile& one) { return one.has_rates(type); });
  return found == kernels.end() ? nullptr : &*found;
}

}  // namespace

const kernel_profile* device_profile::kernel(const std::string& wanted, data_type type) const {
  if (wanted.empty() && type == data_type::fp8) {
    if (const auto* found = first_with_rates(kernels, type)) return found;
  }
  if (wanted.empty()) return first_with_rates(kernels, data_type::bf16);
  if (const auto* found = find_kernel(wanted)) return found;
  if (kernels.empty()) {
    throw input_error(asked("kernel"), wanted, fmt::format("{} has no measured kernels", name));
  }
  throw input_error(asked("kernel"), wanted, expected_one_of(wanted, names_in(kernels)));
}

void require_peak(const device_profile& device, data_type type) {
  if (device.peak(type) > flop_rate()) return;
  throw infeasible(asked("dtype"), std::string(name_of(type)),
                   device.name + " has no such products; expected bf16, fp16 or fp32");
}

device_profile read_device(const config_node& root) {
  constexpr int most_multiprocessors = 1'000'000;
  root.allow_only({"name", "source", "peak", "memory", "multiprocessors", "roofline_efficiency",
                   "kernel_launch", "queues", "communication_slowdown", "idle_start", "uncertainty",
                   "transports", "kernels", "matmul", "power", "elementwise"});
  device_profile device;
  device.name = root.get<std::string>("name");
  device.source = root.get_text("source");
  read_peak(root.at("peak"), device);
  if (root.has("matmul")) device.matmul = read_matmul(root.at("matmul"));
  if (root.has("power")) device.power = read_power(root.at("power"));
  read_memory(root.at("memory"), device);
  if (root.has("elementwise")) read_elementwise(root.at("elementwise"), device);
  device.multiprocessors = root.get_within("multiprocessors", 1, most_multiprocessors);
  device.roofline_efficiency = read_share(root, "roofline_efficiency", 1);
  device.kernel_launch = root.get<seconds>("kernel_launch", {});
  if (root.has("queues")) device.queues = root.get_within("queues", 1, 128);
  device.communication_slowdown = read_factor(root, "communication_slowdown");
  if (root.has("idle_start")) device.idle_start = read_idle_start(root.at("idle_start"));
  if (root.has("uncertainty")) device.uncertainty = read_uncertainty(root.at("uncertainty"));
  if (root.has("transports")) read_transports(root.at("transports"), device);
  if (root.has("kernels")) read_kernels(root.at("kernels"), device);
  return device;
}

}  // namespace attnsim
