#include "sweep/shared_rows.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "model/error.hpp"

namespace attnsim::sweep {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_blocks = 1024;
constexpr double seconds_between_reports = 2;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// That nobody else has, on any machine.
std::string own_name() {
  static std::mutex mutex;
  static std::random_device random;
  const std::lock_guard lock(mutex);
  return fmt::format("own.{:08x}{:08x}.{}", random(), random(), getpid());
}

input_error cannot_write(const std::string& file, int error) {
  return input_error("--out", file,
                     fmt::format("expected a file that can be written ({})",
                                 std::generic_category().message(error)));
}

std::string text_of(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

}  // namespace

std::size_t shared_rows::block_of(std::size_t rows) {
  return std::max<std::size_t>(1, (rows + most_blocks - 1) / most_blocks);
}

shared_rows::shared_rows(std::string path, std::string spec, std::string header, std::size_t rows,
                         prefix begins)
    : path_(std::move(path)),
      folder_(path_ + ".parts"),
      spec_(std::move(spec)),
      header_(std::move(header)),
      rows_(rows),
      block_(block_of(rows)),
      begins_(std::move(begins)) {
  std::error_code error;
  fs::create_directory(folder_, error);
  if (!fs::is_directory(fs::symlink_status(folder_)))
    throw cannot_write(folder_, error ? error.value() : EEXIST);
  if (fs::exists(
          path_)) {  // after the folder was made: who is ready in between takes that away first
    over_ = is_complete();
    if (!over_) {
      fs::remove(folder_, error);  // unless others are at work there
      throw input_error("--share", path_, "expected rows of this sweep, or no file");
    }
    return;
  }
  if (!fs::exists(part("sweep"))) write_part("sweep", header_ + "\n" + spec_);
  check_spec();
}

void shared_rows::check_spec() const {
  const auto text = text_of(part("sweep"));
  if (text == header_ + "\n" + spec_ || is_over()) return;
  throw input_error("--share", folder_,
                    "expected the folder of this sweep; another SPEC's has to be removed");
}

/// Whole or not at all.
void shared_rows::write_part(const std::string& name, const std::string& text) const {
  const auto own = part(own_name());
  std::ofstream stream(own, std::ios::binary);
  stream << text;
  stream.close();
  std::error_code error;
  if (stream) fs::rename(own, part(name), error);
  if ((!stream || error) && !is_over())
    throw cannot_write(part(name), error ? error.value() : errno);
}

bool shared_rows::is_done(std::size_t block) const {
  return access(part(fmt::format("{}.rows", block)).c_str(), F_OK) == 0;
}

std::size_t shared_rows::rows_done() const {
  std::size_t done = 0;
  std::error_code error;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".rows") ++done;
  }
  return error ? rows_ : std::min(rows_, done * block_);
}

/// Whether `path` has all rows of this sweep.
bool shared_rows::is_complete() const {
  std::ifstream stream(path_, std::ios::binary);
  std::string line;
  if (!std::getline(stream, line) || line != header_) return false;
  std::size_t lines = 0;
  for (; std::getline(stream, line); ++lines) {
    if (stream.eof() || lines >= rows_ || !line.starts_with(begins_(lines))) return false;
  }
  return lines == rows_;
}

/// Whether somebody has finished, and taken the folder away.
bool shared_rows::is_over() const {
  return !fs::exists(folder_) && is_complete();
}

bool shared_rows::take(std::size_t block, int round) const {
  const auto file = part(fmt::format("{}.taken.{}", block, round));
  const int opened = open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (opened >= 0) return close(opened) == 0;
  if (errno == EEXIST) return false;
  throw cannot_write(file, errno);
}

/// Whether a block was missing.
bool shared_rows::work_round(const worker& row_of, int round) {
  bool missing = false;
  for (std::size_t block = 0; block < blocks() && !over_; ++block) {
    if (is_done(block)) continue;
    missing = true;
    if (!take(block, round)) continue;
    std::string text;
    for (auto i = block * block_; i < std::min(rows_, (block + 1) * block_) && !over_; ++i)
      text += row_of(i) + "\n";
    if (!over_) write_part(fmt::format("{}.rows", block), text);
    report(false);
  }
  return missing;
}

void shared_rows::work(const worker& row_of) {
  try {
    for (int round = 1; !over_ && work_round(row_of, round);) ++round;
  } catch (...) {
    const bool finished = is_over();
    const std::lock_guard lock(mutex_);
    if (!finished && !failure_) failure_ = std::current_exception();
    over_ = true;
  }
}

void shared_rows::report(bool always) {
  const std::lock_guard lock(mutex_);
  if (!always && now() - reported_ < seconds_between_reports) return;
  reported_ = now();
  progress_(rows_done());
}

void shared_rows::run(int threads, const std::function<worker()>& make_worker,
                      const std::function<void(std::size_t)>& progress) {
  progress_ = progress;
  if (!over_) report(true);
  {
    std::vector<std::jthread> team;
    for (int t = 0; t < threads && !over_; ++t) team.emplace_back([&] { work(make_worker()); });
  }
  if (failure_) std::rethrow_exception(failure_);
  if (!is_complete()) merge();
  progress_(rows_);
  std::error_code error;
  const auto gone = folder_ + "." + own_name();
  fs::rename(folder_, gone, error);  // at once, or others would find blocks missing
  if (!error) fs::remove_all(gone, error);
}

void shared_rows::merge() const {
  check_spec();
  const auto own = part(own_name());
  std::ofstream stream(own, std::ios::binary);
  stream << header_ << "\n";
  bool all = true;
  for (std::size_t block = 0; block < blocks() && all; ++block) {
    std::ifstream rows(part(fmt::format("{}.rows", block)), std::ios::binary);
    all = rows.is_open();
    if (all) stream << rows.rdbuf();
  }
  stream.close();
  std::error_code error;
  if (all && stream) fs::rename(own, path_, error);
  if ((!all || !stream || error) && !is_complete())
    throw cannot_write(path_, error ? error.value() : errno);
}

}  // namespace attnsim::sweep
