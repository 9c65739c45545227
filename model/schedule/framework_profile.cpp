#include "model/schedule/framework_profile.hpp"

#include "model/config.hpp"
#include "model/named.hpp"
#include "model/topology_files.hpp"

namespace attnsim {
namespace {

constexpr name_table<bool host_waits::*, 4> calls{{{&host_waits::exchange, "exchange"},
                                                   {&host_waits::all_gather, "all_gather"},
                                                   {&host_waits::reduce_scatter, "reduce_scatter"},
                                                   {&host_waits::all_to_all, "all_to_all"}}};

template <typename Parse, typename Value>
Value read_choice(const config_node& node, std::string_view key, Parse parse, Value otherwise) {
  return node.has(key) ? node.get_as(key, parse) : otherwise;
}

framework_copies read_copies(const config_node& node) {
  node.allow_only(
      {"joined", "gathered", "scattered", "received", "batched", "returned", "separate", "rate"});
  framework_copies copies;
  copies.joined = read_choice(node, "joined", parse_joining, copies.joined);
  copies.gathered = node.get<bool>("gathered", false);
  copies.scattered = node.get<bool>("scattered", false);
  copies.received = node.get<bool>("received", false);
  copies.batched = node.get<bool>("batched", false);
  copies.returned = node.get<bool>("returned", false);
  copies.separate = node.get<bool>("separate", false);
  copies.rate = node.get<double>("rate", 1);
  if (!(copies.rate > 0 && copies.rate <= 1))
    node.fail("rate", "expected a share above 0 and at most 1");
  return copies;
}

host_waits read_waits(const config_node& list) {
  host_waits waits;
  for (const auto& item : list.items()) {
    try {
      waits.*find_value(calls, item.as<std::string>()) = true;
    } catch (const std::invalid_argument& e) {
      item.fail("", e.what());
    }
  }
  return waits;
}

}  // namespace

framework_profile read_framework(const config_node& root) {
  root.allow_only({"name", "source", "host", "merges", "partials", "gradients", "launch_order",
                   "copies", "repeats_keys", "waits"});
  framework_profile f{.name = root.get<std::string>("name"),
                      .source = root.get_text("source"),
                      .host = root.get<std::string>("host", "")};
  f.merges = read_choice(root, "merges", parse_merges, f.merges);
  f.partials = read_choice(root, "partials", parse_precision, f.partials);
  f.gradients = read_choice(root, "gradients", parse_precision, f.gradients);
  f.launch = read_choice(root, "launch_order", parse_launch_order, f.launch);
  if (root.has("copies")) f.copies = read_copies(root.at("copies"));
  f.repeats_keys = root.get<bool>("repeats_keys", false);
  if (root.has("waits")) f.waits = read_waits(root.at("waits"));
  return f;
}

framework_profile read_framework_file(const std::string& name_or_file) {
  return read_framework(config_node::load(find_topology_file("frameworks", name_or_file)));
}

std::vector<std::string> shipped_frameworks() {
  return shipped_names("frameworks");
}

}  // namespace attnsim
