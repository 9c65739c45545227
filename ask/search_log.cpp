#include "ask/search_log.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <utility>

#include "model/error.hpp"

namespace attnsim {

std::string key_of(const strategy& s) {
  return fmt::format("{} {}x{} u{} tp{} [{}] {} {} {} {} {} {} parts {} shares {}", s.schedule,
                     s.rows, s.cols, s.ulysses, s.tensor_parallel, written(s.levels),
                     name_of(s.tokens), s.placement, s.kernel, name_of(s.order),
                     name_of(s.reduction), name_of(s.launch), s.parts, fmt::join(s.shares, ","));
}

search_log::search_log(const std::string& file, const std::string& asked) {
  if (file.empty()) return;
  const auto first = "search " + asked;
  std::ifstream before(file);
  bool whole = true, begun = false;
  int number = 0;
  for (std::string line; std::getline(before, line);) {
    ++number;
    const location here{fmt::format("{}:{}", file, number), ""};
    if (!std::exchange(begun, true)) {
      if (line != first) throw input_error(here, line.substr(0, 200), "expected '" + first + "'");
      continue;
    }
    whole = !before.eof();  // the last line of a search that was stopped may have no end
    double time = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), time);
    const bool ends = end != line.data() + line.size() && *end == '\t';
    if (whole && (error != std::errc{} || !ends))
      throw input_error(here, line.substr(0, 80),
                        "expected a time in seconds, a tab and a schedule");
    if (whole) known_[line.substr(static_cast<std::size_t>(end - line.data()) + 1)] = seconds(time);
  }
  before.close();
  file_.open(file, std::ios::app);
  if (!file_) throw input_error(location{file, ""}, "cannot be written");
  if (!whole) file_ << '\n';
  if (!begun) file_ << first << std::endl;
}

std::optional<seconds> search_log::find(const std::string& key) const {
  const std::lock_guard lock(guard_);
  const auto found = known_.find(key);
  return found == known_.end() ? std::nullopt : std::optional(found->second);
}

void search_log::add(const std::string& key, seconds time) {
  const std::lock_guard lock(guard_);
  known_[key] = time;
  if (file_.is_open()) file_ << fmt::format("{}\t{}", time.value(), key) << std::endl;
}

}  // namespace attnsim
