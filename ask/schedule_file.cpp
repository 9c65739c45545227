#include "ask/schedule_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "model/config.hpp"

namespace attnsim::ask {
namespace {

constexpr std::string_view origin = "found", itself = "schedule-file";

std::vector<std::string_view> keys_of_files() {
  std::vector<std::string_view> keys{origin};
  for (const auto& f : fields()) {
    if (f.group == field_group::strategy && f.name != itself) keys.push_back(f.name);
  }
  return keys;
}

}  // namespace

void use_schedule_file(question& q, const std::string& file) {
  const auto root = config_node::load(file);
  root.allow_only(keys_of_files());
  if (root.has(origin)) root.at(origin).allow_only({"for", "seed", "evaluated", "time", "limit"});
  for (const auto& [key, node] : root.entries()) {
    if (key == origin) continue;
    try {
      set(q, key, node.as<std::string>());
    } catch (const input_error& e) {
      if (e.field().empty()) throw;
      throw input_error(
          fmt::format("{}: {}", node.where().text, std::string(e.what()).substr(key.size() + 2)));
    }
  }
  q.schedule_file = file;
}

std::string schedule_file_of(const strategy& s, const schedule_origin& from) {
  question q{.schedule = s.schedule, .grid = std::pair(s.rows, s.cols), .ulysses = s.ulysses};
  q.tokens = s.tokens;
  q.placement = s.placement;
  q.kernel = s.kernel;
  q.order = s.order;
  q.levels = s.levels;
  q.parts = s.parts;
  q.shares.assign(s.shares.begin(), s.shares.end());
  if (s.reduction != strategy{}.reduction) q.reduction = s.reduction;
  if (s.launch != strategy{}.launch) q.launch = s.launch;
  if (s.tensor_parallel > 1) q.tensor_parallel = s.tensor_parallel;
  if (q.order == kv_order::direct) q.order.reset();
  auto text = fmt::format("found: {{for: \"{}\", seed: {}, evaluated: {}, time: {}, limit: {}}}\n",
                          from.asked, from.seed, from.evaluated, to_string(from.time),
                          to_string(from.limit));
  text += fmt::format("schedule: {}\n", s.schedule);
  for (const auto& f : fields()) {
    if (f.group != field_group::strategy || f.name == "schedule") continue;
    if (const auto value = f.write(q); !value.empty())
      text += fmt::format("{}: \"{}\"\n", f.name, value);
  }
  return text;
}

}  // namespace attnsim::ask
