#include "formats/smi_matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

namespace attnsim::formats {
namespace {

constexpr int most_links = 64;
constexpr std::size_t most_matrix_columns = 1024;
constexpr std::string_view cells_expected = "expected X, NV#, PIX, PXB, PHB, NODE or SYS";

using words = std::vector<std::string>;

constexpr std::string_view digits = "0123456789";

/// The length of "[4m", an escape that lost its first letter; 0: none begins here.
std::size_t lost_escape(std::string_view text) {
  if (!text.starts_with('[')) return 0;
  const auto end = text.find_first_not_of("0123456789;", 1);
  return end != std::string_view::npos && text[end] == 'm' ? end + 1 : 0;
}

/// The words of a line, without a markdown table's bars and code marks, nor escapes that lost their
/// first letter.
words bare_words(std::string_view line) {
  std::string bare;
  while (!line.empty()) {
    const auto escape = lost_escape(line);
    const bool ornament = std::string_view("|`*").find(line.front()) != std::string_view::npos;
    bare += escape > 0 || ornament ? ' ' : line.front();
    line.remove_prefix(std::max<std::size_t>(escape, 1));
  }
  const auto found = words_of(bare);
  return {found.begin(), found.end()};
}

/// The length of the digits after `before`, with it; 0: the text does not begin so.
std::size_t numbered(std::string_view text, std::string_view before) {
  if (!text.starts_with(before)) return 0;
  const auto end = std::min(text.find_first_not_of(digits, before.size()), text.size());
  return end > before.size() ? end : 0;
}

/// mlx5_0, mlx5_bond_0.
std::size_t mellanox(std::string_view text) {
  const auto card = numbered(text, "mlx");
  if (card == 0) return 0;
  const auto rest = text.substr(card);
  const auto port = std::max(numbered(rest, "_"), numbered(rest, "_bond_"));
  return port > 0 ? card + port : 0;
}

/// The known name or cell that a word begins with; empty: none.
std::string_view known_beginning(std::string_view word) {
  for (const std::string_view name : {"GPU", "NIC", "NV"}) {
    if (const auto length = numbered(word, name); length > 0) return word.substr(0, length);
  }
  if (const auto length = mellanox(word); length > 0) return word.substr(0, length);
  for (const std::string_view name :
       {"CPU", "NUMA", "NODE", "PIX", "PXB", "PHB", "SYS", "SOC", "X"}) {
    if (word.starts_with(name)) return word.substr(0, name.size());
  }
  return {};
}

std::optional<smi_cell> to_cell(std::string_view word) {
  constexpr std::pair<std::string_view, smi_relation> names[] = {
      {"X", smi_relation::self},    {"PIX", smi_relation::pix},   {"PXB", smi_relation::pxb},
      {"PHB", smi_relation::phb},   {"NODE", smi_relation::node}, {"SYS", smi_relation::system},
      {"SOC", smi_relation::system}};  // SOC: SYS in old drivers
  for (const auto& [name, how] : names) {
    if (word == name) return smi_cell{how, 0};
  }
  const auto n = word.starts_with("NV") ? to_number<int>(word.substr(2)) : std::nullopt;
  if (!n || *n < 1 || *n > most_links) return {};
  return smi_cell{smi_relation::nvlink, *n};
}

/// A NIC may have any name that has a digit: mlx5_0, bnxt_re1, rocep13s0.
bool is_name(std::string_view word) {
  const auto is_letter = [](unsigned char c) { return std::isalpha(c) != 0; };
  const auto may_stand = [&](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-';
  };
  return !word.empty() && is_letter(word.front()) &&
         std::all_of(word.begin(), word.end(), may_stand) &&
         word.find_first_of(digits) != std::string_view::npos && !to_cell(word);
}

struct header {
  std::size_t at = 0;  ///< index of its line
  words before;        ///< GPU0: what every line begins with, such as "node1:" or ">"
  words columns;
  std::string glued;  ///< a word of which only the beginning is a known name
  bool has_numa = false, has_gpu_numa = false;
};

/// The names that a word of the header is made of, nothing behind an affinity's title; nothing at all: it is no name.
std::optional<words> names_of(std::string_view word, header& h) {
  words names;
  for (auto rest = word; !rest.empty();) {
    const auto name = known_beginning(rest);
    if (name == "CPU" || name == "NUMA") return names;
    if (to_cell(name)) return {};
    if (name.empty()) {
      const bool is_whole = names.empty();
      if (is_whole && is_name(rest)) return words{std::string(rest)};
      if (is_whole || std::isalpha(static_cast<unsigned char>(rest.front())) == 0) return {};
      h.glued = word;
      return names;
    }
    names.emplace_back(name);
    rest.remove_prefix(name.size());
  }
  return names;
}

/// "--:", of the line below a markdown table's header.
bool is_rule(std::string_view word) {
  return word.find_first_not_of(":-") == std::string_view::npos;
}

bool ends_names(std::string_view word) {
  return word == "GPU" || word.ends_with("CPU") || word.ends_with("NUMA");
}

/// "GPU0 GPU1 ...", maybe behind what every line begins with, and before titles of affinities.
std::optional<header> to_header(std::string_view line, std::size_t at) {
  if (line.find("GPU0") == std::string_view::npos) return {};
  const auto all = bare_words(line);
  auto word = std::find_if(all.begin(), all.end(),
                           [](const auto& w) { return known_beginning(w) == "GPU0"; });
  header h{.at = at, .before = {all.begin(), word}};
  if (word == all.end()) return {};
  if (!h.before.empty() && !h.before.back().ends_with(':') && !h.before.back().ends_with('>'))
    return {};
  for (; word != all.end(); ++word) {
    const auto names = *word == "GPU" ? words{} : names_of(*word, h);
    if (!names || h.columns.size() > most_matrix_columns) return {};
    h.columns.insert(h.columns.end(), names->begin(), names->end());
    if (ends_names(*word)) break;
  }
  h.has_numa = line.find("NUMA Affinity") != std::string_view::npos;
  h.has_gpu_numa = line.find("GPU NUMA ID") != std::string_view::npos;
  return h;
}

std::optional<header> find_header(const std::vector<text_line>& lines, std::size_t from = 0) {
  for (auto at = from; at < lines.size(); ++at) {
    if (auto h = to_header(lines[at].text, at)) return h;
  }
  return {};
}

class matrix_reader {
 public:
  explicit matrix_reader(const source& from) : from_(from), lines_(lines_of(from.text)) {}

  smi_matrix read() {
    const auto found = find_header(lines_);
    if (!found) fail_at(from_, 1, "expected a line of column names: GPU0 GPU1 ...");
    header_ = *found;
    check_header();
    const auto rows = row_lines();
    for (std::size_t i = 0; i < rows.size(); ++i) read_row(rows[i], i + 1 == rows.size());
    add_missing_rows(rows.empty() ? lines_[header_.at].number : rows.back().number);
    complete_by_symmetry();
    matrix_.another_follows = find_header(lines_, header_.at + 1).has_value();
    matrix_.without_nvlink = from_.text.find("topo -mp") != std::string::npos;
    return std::move(matrix_);
  }

 private:
  struct bare_line {
    std::size_t number;
    words cells;  ///< the name of the row first
  };

  const words& columns() const { return header_.columns; }

  void check_header() const {
    const auto line = lines_[header_.at].number;
    if (!header_.glued.empty()) {
      fail_at(from_, line, "column", header_.glued, "expected blanks between the names of columns");
    }
    if (std::set<std::string>(columns().begin(), columns().end()).size() < columns().size()) {
      fail_at(from_, line, "expected column names that differ");
    }
  }

  /// The lines below the header, a table's rule apart, up to the first that begins with no column's name.
  std::vector<bare_line> row_lines() const {
    std::vector<bare_line> rows;
    for (auto at = header_.at + 1; at < lines_.size() && rows.size() < columns().size(); ++at) {
      const auto& [number, text] = lines_[at];
      auto cells = cells_of(text);
      if (std::all_of(cells.begin(), cells.end(), is_rule)) continue;
      if (cells.empty() ||
          std::find(columns().begin(), columns().end(), cells[0]) == columns().end())
        break;
      const auto& expected = columns()[rows.size()];
      if (cells[0] != expected) fail_at(from_, number, "row", cells[0], "expected " + expected);
      rows.push_back({number, std::move(cells)});
    }
    return rows;
  }

  words cells_of(std::string_view line) const {
    auto cells = bare_words(line);
    const auto& before = header_.before;
    if (cells.size() > before.size() && std::equal(before.begin(), before.end(), cells.begin())) {
      cells.erase(cells.begin(), cells.begin() + std::ssize(before));
    }
    split_name(cells);
    return cells;
  }

  /// "GPU0X" is a name and a cell.
  static void split_name(words& cells) {
    if (cells.empty()) return;
    const std::string name(known_beginning(cells.front()));
    if (name.empty() || name == cells.front() ||
        known_beginning(std::string_view(cells.front()).substr(name.size())).empty())
      return;
    cells.insert(cells.begin() + 1, cells.front().substr(name.size()));
    cells.front() = name;
  }

  std::size_t gpus() const {
    return static_cast<std::size_t>(
        std::count_if(columns().begin(), columns().end(),
                      [](const auto& name) { return name.starts_with("GPU"); }));
  }

  void read_row(const bare_line& line, bool last) {
    smi_row row{.name = line.cells.front()};
    words behind;
    for (auto word = line.cells.begin() + 1; word != line.cells.end(); ++word) {
      if (row.cells.size() == columns().size()) {
        behind.push_back(*word);
      } else if (auto rest = read_cells(line, *word, row); !rest.empty()) {
        behind.push_back(std::move(rest));
      }
    }
    if (row.cells.size() < columns().size() && !last) {
      fail_at(from_, line.number,
              fmt::format("row {}: expected {} cells, found {}", row.name, columns().size(),
                          row.cells.size()));
    }
    row.cells.resize(columns().size());
    const auto told = [&](std::size_t i) { return i < behind.size() && behind[i] != "N/A"; };
    if (told(0)) row.affinity = behind[0];
    row.numa_known = !header_.has_numa || told(1);
    if (header_.has_gpu_numa) matrix_.grace = matrix_.grace.value_or(false) || told(2);
    matrix_.rows.push_back(std::move(row));
  }

  /// Appends the cells of a word, one as a rule; what follows the row's last.
  std::string read_cells(const bare_line& line, std::string_view word, smi_row& row) const {
    auto rest = word;
    while (!rest.empty() && row.cells.size() < columns().size()) {
      const auto name = known_beginning(rest);
      const auto cell = to_cell(name);
      if (!cell) {
        const auto expected = rest.size() == word.size()
                                  ? std::string(cells_expected)
                                  : fmt::format("{}, with blanks between", cells_expected);
        fail_at(from_, line.number, row.name, word, expected);
      }
      row.cells.push_back(*cell);
      rest.remove_prefix(name.size());
    }
    return std::string(rest);
  }

  void add_missing_rows(std::size_t last_line) {
    auto& rows = matrix_.rows;
    if (rows.size() < gpus()) {
      fail_at(from_, last_line,
              fmt::format("the matrix ends after {} of {} rows: row {} is missing", rows.size(),
                          columns().size(), columns()[rows.size()]));
    }
    matrix_.rows_missing = columns().size() - rows.size();
    while (rows.size() < columns().size()) {
      rows.push_back({.name = columns()[rows.size()]});
      rows.back().cells.resize(columns().size());
    }
  }

  /// A cell that is missing is read from the other triangle.
  void complete_by_symmetry() {
    auto& rows = matrix_.rows;
    for (std::size_t a = 0; a < rows.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        auto &lower = rows[a].cells[b], &upper = rows[b].cells[a];
        if (lower.how == smi_relation::unknown) lower = upper;
        if (upper.how == smi_relation::unknown) upper = lower;
        if (lower.how == smi_relation::unknown) ++matrix_.pairs_unknown;
        if (lower.how != upper.how || lower.nvlinks != upper.nvlinks) {
          throw input_error(fmt::format("{}: {} to {} and back differ: expected a symmetric matrix",
                                        from_.name, rows[b].name, rows[a].name));
        }
      }
    }
  }

  const source& from_;
  std::vector<text_line> lines_;
  header header_;
  smi_matrix matrix_;
};

}  // namespace

bool has_smi_matrix(std::string_view text) {
  constexpr std::size_t beginning = 1 << 16;
  return find_header(lines_of(text.substr(0, beginning))).has_value();
}

smi_matrix read_smi_matrix(const source& from) {
  return matrix_reader(from).read();
}

}  // namespace attnsim::formats
