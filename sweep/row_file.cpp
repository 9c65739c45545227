#include "sweep/row_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "model/error.hpp"

namespace attnsim::sweep {
namespace {

namespace fs = std::filesystem;

/// Calls f with each line that has its end; returns the bytes of those.
template <typename F>
std::uintmax_t each_line(const std::string& path, F f) {
  std::ifstream stream(path, std::ios::binary);
  std::uintmax_t bytes = 0;
  for (std::string line; std::getline(stream, line) && !stream.eof();) {
    bytes += line.size() + 1;
    f(std::move(line));
  }
  return bytes;
}

input_error other_sweep(const std::string& file) {
  return input_error("--resume", file,
                     "expected rows of this sweep; without --resume it begins anew");
}

input_error cannot_write(const std::string& file) {
  return input_error("--out", file,
                     fmt::format("expected a file that can be written ({})",
                                 std::generic_category().message(errno)));
}

}  // namespace

row_file::row_file(std::string path, std::string header, std::size_t rows, bool resume,
                   const prefix& begins)
    : path_(std::move(path)), header_(std::move(header)), rows_(rows) {
  bool goes_on = resume && fs::is_regular_file(fs::symlink_status(journal()));
  if (goes_on) {
    goes_on = read_journal(begins) > 0;
  } else if (resume && fs::exists(path_)) {
    read_finished(begins);
  }
  open_journal(goes_on);
  if (goes_on) return;
  auto known = header_ + "\n";
  for (std::size_t i = 0; i < rows; ++i) {
    if (!rows_[i].empty()) known += fmt::format("{},{}\n", i, rows_[i]);
  }
  if (!write(known)) throw cannot_write(journal());
}

/// Never through a symbolic link, which someone else may have laid there.
void row_file::open_journal(bool goes_on) {
  if (!goes_on) unlink(journal().c_str());
  const int opened =
      open(journal().c_str(),
           O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | (goes_on ? 0 : O_CREAT | O_EXCL), 0666);
  if (opened < 0) throw cannot_write(journal());
  stream_.reset(fdopen(opened, "ab"));
}

bool row_file::write(const std::string& line) {
  return std::fputs(line.c_str(), stream_.get()) >= 0 && std::fflush(stream_.get()) == 0;
}

std::uintmax_t row_file::read_journal(const prefix& begins) {
  bool first = true;
  const auto bytes = each_line(journal(), [&](std::string line) {
    if (std::exchange(first, false)) {
      if (line != header_) throw other_sweep(journal());
      return;
    }
    std::size_t index = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), index);
    if (error != std::errc{} || *end != ',') throw other_sweep(journal());
    keep(index, line.substr(static_cast<std::size_t>(end + 1 - line.data())), journal(), begins);
  });
  fs::resize_file(journal(), bytes);
  return bytes;
}

void row_file::read_finished(const prefix& begins) {
  std::size_t lines = 0;
  each_line(path_, [&](std::string line) {
    if (lines++ > 0) {
      keep(lines - 2, std::move(line), path_, begins);
    } else if (line != header_) {
      throw other_sweep(path_);
    }
  });
}

void row_file::keep(std::size_t index, std::string row, const std::string& file,
                    const prefix& begins) {
  if (index >= rows_.size() || row.empty() || !row.starts_with(begins(index)))
    throw other_sweep(file);
  rows_[index] = std::move(row);
}

std::vector<std::size_t> row_file::missing() const {
  std::vector<std::size_t> list;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].empty()) list.push_back(i);
  }
  return list;
}

void row_file::add(std::size_t index, const std::string& row) {
  rows_[index] = row;
  if (!write(fmt::format("{},{}\n", index, row))) throw cannot_write(journal());
}

std::string row_file::text() const {
  std::string all = header_ + "\n";
  for (const auto& row : rows_) all += row + "\n";
  return all;
}

void row_file::close() {
  stream_.reset();
  fs::remove(journal());
}

}  // namespace attnsim::sweep
