#include "calibrate/nccl_tests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "model/error.hpp"
#include "model/read_file.hpp"
#include "model/spelling.hpp"

namespace attnsim {
namespace {

using words = std::vector<std::string>;

words split(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}

words split_at_commas(const std::string& line) {
  words cells;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
  if (line.ends_with(',')) cells.emplace_back();
  return cells;
}

/// Where a message points.
struct place {
  std::string file;
  int line = 0;

  [[noreturn]] void fail(const std::string& column, const std::string& value,
                         const std::string& expected) const {
    throw input_error(fmt::format("{}:{}: {}", file, line, column), value, expected);
  }
  template <typename T>
  T number(const std::string& column, const std::string& cell, const char* expected) const {
    T value{};
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc() || end != cell.data() + cell.size() || !(value >= T{}))
      fail(column, cell, expected);
    return value;
  }
  double real(const std::string& column, const std::string& cell) const {
    return number<double>(column, cell, "expected a number");
  }
  std::int64_t whole(const std::string& column, const std::string& cell) const {
    return number<std::int64_t>(column, cell, "expected a whole number");
  }
};

constexpr std::size_t longest_line = 4096;  ///< that std::regex takes; a command may be longer

class log_reader {
 public:
  explicit log_reader(const std::string& name) : at_{name} {}

  nccl_tests_log run(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      ++at_.line;
      read(line.size() < longest_line ? without_prefix(line) : line);
    }
    if (log_.operation.empty()) log_.operation = operation_in(lower_case(at_.file));
    if (log_.operation.empty())
      throw input_error(at_.file, "no operation", "expected 'op=NAME' or NAME_perf in the log");
    if (log_.rows.empty()) throw input_error(at_.file, "no rows", "expected a table of nccl-tests");
    log_.nodes = static_cast<int>(hosts_.size());
    return std::move(log_);
  }

 private:
  static std::string without_prefix(const std::string& line) {
    static const std::regex prefix(R"(^\s*(\[[0-9,]+\]\s*<std(out|err)>:|[0-9]+:))");
    return std::regex_replace(line, prefix, "", std::regex_constants::format_first_only);
  }

  static std::string operation_in(const std::string& text) {
    static const std::pair<const char*, const char*> names[] = {
        {"all_reduce", "all_reduce"},
        {"allreduce", "all_reduce"},
        {"all_gather", "all_gather"},
        {"allgather", "all_gather"},
        {"reduce_scatter", "reduce_scatter"},
        {"reducescatter", "reduce_scatter"},
        {"alltoall", "alltoall"},
        {"all_to_all", "alltoall"},
        {"sendrecv", "sendrecv"},
        {"send_recv", "sendrecv"}};
    const auto file = text.substr(text.find_last_of('/') + 1);
    for (const auto& [spelling, name] : names) {
      if (file.find(spelling) != std::string::npos) return name;
    }
    return "";
  }

  void read(const std::string& line) {
    find_operation(line);
    if (line.size() >= longest_line) return;
    const auto cells = split(line);
    if (cells.empty()) return;
    if (cells[0].starts_with('#')) return read_comment(line, cells);
    const auto is_whole = [&](std::size_t i) {
      return i < cells.size() && cells[i].find_first_not_of("0123456789") == std::string::npos;
    };
    const bool below_header = columns_ > 0;
    if (is_whole(0) && (below_header || is_whole(1))) read_row(line, cells);
  }

  /// In the command or a comment, the first that tells it.
  void find_operation(const std::string& line) {
    if (!log_.operation.empty()) return;
    constexpr const char* letters = "abcdefghijklmnopqrstuvwxyz_";
    const auto word_at = [&](std::size_t begin) {
      const auto end = std::min(line.find_first_not_of(letters, begin), line.size());
      return operation_in(line.substr(begin, end - begin));
    };
    if (const auto at = line.find("op="); at != std::string::npos) log_.operation = word_at(at + 3);
    const auto end = line.find("_perf");
    if (log_.operation.empty() && end != std::string::npos)
      log_.operation = word_at(line.find_last_not_of(letters, end) + 1);
  }

  void read_comment(const std::string& line, const words& cells) {
    std::smatch found;
    static const std::regex device(R"(Rank\s+[0-9]+ .* on\s+(\S+) device)");
    if (std::regex_search(line, found, device)) {
      ++log_.ranks;
      hosts_.insert(found[1]);
    }
    const auto has = [&](const char* name) {
      return std::find(cells.begin(), cells.end(), name) != cells.end();
    };
    if (has("size") && has("count") && has("time")) columns_ = 3 + has("redop") + has("root");
  }

  void read_row(const std::string& line, const words& cells) {
    if (columns_ == 0)
      at_.fail("row", line, "expected '# size count type ...' before the first row");
    constexpr std::size_t timed = 4;
    const auto expected = columns_ + 2 * timed;
    if (cells.size() != expected)
      at_.fail("row", line, fmt::format("expected {} cells, got {}", expected, cells.size()));
    nccl_tests_row row{.line = at_.line,
                       .bytes = at_.whole("size", cells[0]),
                       .count = at_.whole("count", cells[1]),
                       .type = cells[2],
                       .reduction = columns_ > 3 ? cells[3] : ""};
    const auto out = read_timing(cells, columns_);
    if (!out) at_.fail("time", cells[columns_], "expected a number");
    row.out_of_place = *out;
    row.in_place = read_timing(cells, columns_ + timed);
    if (row.bytes > 0) log_.rows.push_back(row);
  }

  std::optional<nccl_tests_timing> read_timing(const words& cells, std::size_t first) const {
    if (const auto& wrong = cells[first + 3]; wrong != "N/A" && at_.real("#wrong", wrong) > 1e-3)
      at_.fail("#wrong", wrong, "expected 0: the results of this run are wrong");
    if (cells[first] == "N/A") return {};
    return nccl_tests_timing{at_.real("time", cells[first]), at_.real("algbw", cells[first + 1]),
                             at_.real("busbw", cells[first + 2])};
  }

  place at_;
  nccl_tests_log log_;
  std::set<std::string> hosts_;
  std::size_t columns_ = 0;  ///< before the times
};

class table_reader {
 public:
  explicit table_reader(const std::string& name) : at_{name} {}

  nccl_tests_log run(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      ++at_.line;
      if (line.empty() || line.starts_with('#')) continue;
      const auto cells = split_at_commas(line);
      if (column_.empty()) {
        read_header(cells);
        continue;
      }
      if (cells.size() != column_.size())
        at_.fail("row", line,
                 fmt::format("expected {} cells, got {}", column_.size(), cells.size()));
      read_row(cells);
    }
    if (log_.rows.empty()) throw input_error(at_.file, "no rows", "expected a table of nccl-tests");
    return std::move(log_);
  }

 private:
  void read_header(const words& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) column_[cells[i]] = i;
    for (const char* name : {"op", "ranks", "size_bytes", "time_us"}) {
      if (!column_.count(name))
        at_.fail("header", name, "missing; expected at least op, ranks, size_bytes, time_us");
    }
  }

  std::string cell(const words& cells, const char* name) const {
    const auto found = column_.find(name);
    return found == column_.end() ? "" : cells[found->second];
  }

  double real(const words& cells, const char* name) const {
    const auto text = cell(cells, name);
    return text.empty() ? 0 : at_.real(name, text);
  }

  void read_row(const words& cells) {
    const auto operation = cell(cells, "op");
    const auto ranks = static_cast<int>(at_.whole("ranks", cell(cells, "ranks")));
    if (!log_.rows.empty() && (operation != log_.operation || ranks != log_.ranks))
      at_.fail("op", operation,
               fmt::format("expected {} of {} ranks, as in the rows before", log_.operation,
                           log_.ranks));
    log_.operation = operation;
    log_.ranks = ranks;
    if (column_.count("nodes"))
      log_.nodes = static_cast<int>(at_.whole("nodes", cell(cells, "nodes")));
    nccl_tests_row row{.line = at_.line,
                       .bytes = at_.whole("size_bytes", cell(cells, "size_bytes")),
                       .type = cell(cells, "dtype"),
                       .reduction = cell(cells, "redop"),
                       .out_of_place = {at_.real("time_us", cell(cells, "time_us")),
                                        real(cells, "algbw_GBps"), real(cells, "busbw_GBps")}};
    if (const auto count = cell(cells, "count"); !count.empty())
      row.count = at_.whole("count", count);
    if (!cell(cells, "ip_time_us").empty()) {
      row.in_place = {real(cells, "ip_time_us"), real(cells, "ip_algbw_GBps"),
                      real(cells, "ip_busbw_GBps")};
    }
    if (row.bytes > 0) log_.rows.push_back(row);
  }

  place at_;
  nccl_tests_log log_;
  std::map<std::string, std::size_t> column_;
};

}  // namespace

nccl_tests_log read_nccl_tests(const std::string& path) {
  return read_nccl_tests(path, read_file(path));
}

nccl_tests_log read_nccl_tests(const std::string& name, const std::string& text) {
  const bool is_table = name.ends_with(".csv") || name.ends_with(".csv.gz");
  return is_table ? table_reader(name).run(text) : log_reader(name).run(text);
}

}  // namespace attnsim
