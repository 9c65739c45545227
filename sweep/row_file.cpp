#include "sweep/row_file.hpp"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
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

}  // namespace

row_file::row_file(std::string path, std::string header, std::size_t rows, bool resume,
                   const prefix& begins)
    : path_(std::move(path)), header_(std::move(header)), rows_(rows) {
  bool goes_on = resume && fs::exists(journal());
  if (goes_on) {
    goes_on = read_journal(begins) > 0;
  } else if (resume && fs::exists(path_)) {
    read_finished(begins);
  }
  stream_.open(journal(), std::ios::binary | (goes_on ? std::ios::app : std::ios::trunc));
  if (!goes_on) {
    stream_ << header_ << '\n';
    for (std::size_t i = 0; i < rows; ++i) {
      if (!rows_[i].empty()) stream_ << i << ',' << rows_[i] << '\n';
    }
    stream_.flush();
  }
  if (!stream_) throw input_error("--out", path_, "expected a file that can be written");
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
  stream_ << index << ',' << row << std::endl;
  if (!stream_) throw input_error("--out", journal(), "expected room for the next row");
}

std::string row_file::text() const {
  std::string all = header_ + "\n";
  for (const auto& row : rows_) all += row + "\n";
  return all;
}

void row_file::close() {
  stream_.close();
  fs::remove(journal());
}

}  // namespace attnsim::sweep
