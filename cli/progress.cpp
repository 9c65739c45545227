#include "cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace attnsim::cli {
namespace {

using std::chrono::duration;

/// "45 s", "12 min", "3.5 h".
std::string rough(double seconds) {
  if (seconds < 100) return fmt::format("{:.0f} s", seconds);
  if (seconds < 6000) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

}  // namespace

progress::progress(std::string unit, bool quiet)
    : unit_(std::move(unit)), quiet_(quiet), terminal_(isatty(STDERR_FILENO) != 0) {}

void progress::show(std::size_t done, std::size_t wanted) {
  const auto now = clock::now();
  if (!before_ || done < latest_) {
    before_ = done;
    started_ = reported_ = now;
  }
  latest_ = done;
  const duration<double> often(terminal_ ? 0.2 : 5);
  const bool last = terminal_ && done == wanted;
  if (quiet_ || (now - reported_ < often && !last)) return;
  reported_ = now;
  constexpr std::size_t width = 40;
  const auto filled = wanted > 0 ? width * done / wanted : width;
  const double passed = duration<double>(now - started_).count();
  auto text = fmt::format("[{:#<{}}{:.<{}}] {} of {} {}, {}", "", filled, "", width - filled, done,
                          wanted, unit_, rough(passed));
  if (done > *before_ && done < wanted) {
    const auto each = passed / static_cast<double>(done - *before_);
    text += fmt::format(", {} left", rough(each * static_cast<double>(wanted - done)));
  }
  fmt::print(stderr, "{}{}{}", terminal_ ? "\r" : "", text, terminal_ ? "\033[K" : "\n");
  on_line_ = terminal_;
}

void progress::end() {
  if (on_line_) fmt::print(stderr, "\n");
  on_line_ = false;
}

}  // namespace attnsim::cli
