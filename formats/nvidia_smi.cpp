// What `nvidia-smi topo -m` prints: a matrix of devices and NICs, separated by tabs or blanks, with
// affinity columns behind and a legend below. A cell is NV# (that many NVLinks) or the closest way
// over PCIe: PIX (one switch) < PXB (several) < PHB (a host bridge) < NODE (a NUMA domain) < SYS.
// From these a tree of switches and CPU domains is built: what is related at a level shares a switch
// of that level. Rows may be missing at the end (a paste cut short): a cell is then read from the
// other triangle.
#include <fmt/format.h>

#include <algorithm>
#include <boost/pending/disjoint_sets.hpp>
#include <map>
#include <numeric>
#include <set>

#include "formats/formats.hpp"
#include "formats/hardware.hpp"

namespace attnsim::formats {
namespace {

enum relation { self, pix, pxb, phb, same_node, system_, nvlink, unknown };
constexpr std::string_view relation_names[] = {"X", "PIX", "PXB", "PHB", "NODE", "SYS"};
constexpr int most_nvlinks = 64;
constexpr int most_nvlinks_of_gpu = 18;  ///< more to all peers together: through a switch
constexpr std::size_t most_columns = 1024;

struct cell {
  relation how = unknown;
  int nvlinks = 0;
};

struct row {
  std::string name;
  std::vector<cell> cells;
  std::string affinity;  ///< CPUs; empty: not known
  bool numa_known = true;
};

bool is_gpu(std::string_view name) {
  return name.starts_with("GPU");
}

class reader {
 public:
  reader(const source& from, const settings& given)
      : from_(from), given_(given), known_(known_hardware()) {}

  topology read() {
    read_matrix();
    identify_device();
    add_parts();
    add_tree();
    add_nvlinks();
    return std::move(result_);
  }

 private:
  void assume(const std::string& line) { result_.said.assumed.push_back(line); }
  void miss(const std::string& line) { result_.said.missing.push_back(line); }
  void warn(const std::string& line) { result_.said.warnings.push_back(line); }

  cell read_cell(const text_line& line, std::string_view word) const {
    for (int r = self; r <= system_; ++r) {
      if (word == relation_names[r]) return {static_cast<relation>(r), 0};
    }
    if (word.starts_with("NV")) {
      const auto n = to_number<int>(word.substr(2));
      if (n && *n >= 1 && *n <= most_nvlinks) return {nvlink, *n};
    }
    fail_at(from_, line.number, line.text.substr(0, line.text.find_first_of(" \t")), word,
            "expected X, NV#, PIX, PXB, PHB, NODE or SYS");
  }

  void read_matrix() {
    const auto lines = lines_of(from_.text);
    if (lines.empty()) fail_at(from_, 1, "expected a line of column names: GPU0 GPU1 ...");
    for (const auto word : words_of(lines.front().text)) {
      if (word == "CPU" || word == "NUMA" || columns_.size() == most_columns) break;
      columns_.emplace_back(word);
    }
    const bool has_numa = lines.front().text.find("NUMA Affinity") != std::string_view::npos;
    if (columns_.empty() || !is_gpu(columns_.front())) {
      fail_at(from_, lines.front().number, "expected a line of column names: GPU0 GPU1 ...");
    }
    if (std::set<std::string>(columns_.begin(), columns_.end()).size() < columns_.size()) {
      fail_at(from_, lines.front().number, "expected column names that differ");
    }
    for (std::size_t i = 1; i < lines.size() && rows_.size() < columns_.size(); ++i) {
      if (trimmed(lines[i].text).starts_with("Legend")) break;
      read_row(lines[i], has_numa, i + 1 == lines.size());
    }
    complete();
  }

  void read_row(const text_line& line, bool has_numa, bool last) {
    const auto words = words_of(line.text);
    row r{.name = std::string(words.front())};
    const auto& expected = columns_[rows_.size()];
    if (r.name != expected) {
      fail_at(from_, line.number, "row", r.name, fmt::format("expected {}", expected));
    }
    const auto cells = std::min(words.size() - 1, columns_.size());
    if (cells < columns_.size() && !last) {
      fail_at(from_, line.number,
              fmt::format("row {}: expected {} cells, found {}", r.name, columns_.size(), cells));
    }
    for (std::size_t c = 1; c <= cells; ++c) r.cells.push_back(read_cell(line, words[c]));
    if (words.size() > columns_.size() + 1) {
      r.affinity = words[columns_.size() + 1];
      if (r.affinity == "N/A") r.affinity.clear();
    }
    r.numa_known =
        !has_numa || (words.size() > columns_.size() + 2 && words[columns_.size() + 2] != "N/A");
    r.cells.resize(columns_.size());
    rows_.push_back(std::move(r));
  }

  /// Rows that the paste lost, and cells from the other triangle.
  void complete() {
    const auto read = rows_.size();
    const auto gpus = static_cast<std::size_t>(
        std::count_if(columns_.begin(), columns_.end(), [](const auto& n) { return is_gpu(n); }));
    if (read < gpus) {
      fail_at(from_, lines_of(from_.text).back().number,
              fmt::format("the matrix ends after {} of {} rows: row {} is missing", read,
                          columns_.size(), columns_[read]));
    }
    for (auto i = read; i < columns_.size(); ++i) {
      rows_.push_back({.name = columns_[i], .cells = {}, .affinity = {}});
      rows_.back().cells.resize(columns_.size());
    }
    std::size_t unknown_cells = 0;
    for (std::size_t a = 0; a < rows_.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        auto &lower = rows_[a].cells[b], &upper = rows_[b].cells[a];
        if (lower.how == unknown) lower = upper;
        if (upper.how == unknown) upper = lower;
        if (lower.how == unknown) ++unknown_cells;
        if (lower.how != upper.how || lower.nvlinks != upper.nvlinks) {
          throw input_error(fmt::format("{}: {} to {} and back differ: expected a symmetric matrix",
                                        from_.name, rows_[b].name, rows_[a].name));
        }
      }
    }
    if (read < columns_.size()) {
      miss(fmt::format(
          "{} of the matrix: the paste is cut short{}", counted(columns_.size() - read, "row"),
          unknown_cells == 0 ? "; the other rows tell the same"
                             : fmt::format(", {} pairs of NICs unknown", unknown_cells)));
    }
  }

  std::vector<std::size_t> columns_of(bool gpus) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (is_gpu(columns_[i]) == gpus) found.push_back(i);
    }
    return found;
  }

  int nvlinks_of(std::size_t gpu) const {
    int sum = 0;
    for (const auto& c : rows_[gpu].cells) sum += c.nvlinks;
    return sum;
  }

  /// Every GPU has links to a switch that joins all: more than one GPU has to its peers.
  int nvlinks_to_switch() const {
    const auto gpus = columns_of(true);
    const int first = gpus.size() > 1 ? rows_[gpus[0]].cells[gpus[1]].nvlinks : 0;
    for (const auto a : gpus) {
      for (const auto b : gpus) {
        if (a != b && rows_[a].cells[b].nvlinks != first) return 0;
      }
    }
    return first * (static_cast<int>(gpus.size()) - 1) > most_nvlinks_of_gpu ? first : 0;
  }

  void identify_device() {
    int most = nvlinks_to_switch();
    if (most == 0) {
      for (const auto g : columns_of(true)) most = std::max(most, nvlinks_of(g));
    }
    if (!given_.device.empty()) {
      device_ = &known_.by_profile(given_.device);
      result_.device = given_.device;
    } else {
      device_ = &known_.by_nvlinks(most);
      result_.device = device_->profile;
      miss("the GPUs' kind: --device");
      if (device_ != &known_.unknown)
        assume(fmt::format("the GPUs are {}, from {}", device_->name,
                           counted(static_cast<std::size_t>(most), "NVLink")));
    }
  }

  void add_parts() {
    part_.resize(columns_.size());
    std::size_t gpus = 0, nics = 0;
    for (const auto i : columns_of(true)) {
      part_[i] = result_.add(part_kind::device, fmt::format("gpu{}", gpus++), 0);
    }
    for (const auto i : columns_of(false)) {
      part_[i] = result_.add(part_kind::nic, fmt::format("nic{}", nics++), 0);
    }
    result_.said.read = {fmt::format("{}, {}", counted(gpus, "GPU"), counted(nics, "NIC"))};
    if (nics == 0) return;
    result_.nic_rate =
        given_.nic_rate > bandwidth{} ? given_.nic_rate : known_.nic_rate(device_->pcie);
    if (given_.nic_rate > bandwidth{}) return;
    miss("speed of the NICs: --nic-bandwidth");
    assume(fmt::format("NICs of {}, made for PCIe at {:g} GT/s", to_string(result_.nic_rate),
                       device_->pcie));
  }

  /// Joins what is related at each level under a switch of that level, where it joins at least two.
  void add_tree() {
    const auto rate = pcie_rate(device_->pcie, 16);
    if (columns_.size() == 1 && rows_.front().affinity.empty()) return;
    std::vector<std::size_t> ranks(columns_.size()), parents(columns_.size());
    boost::disjoint_sets sets(ranks.data(), parents.data());
    for (std::size_t i = 0; i < columns_.size(); ++i) sets.make_set(i);
    std::map<std::size_t, std::size_t> top;  // set -> part that stands for it
    for (std::size_t i = 0; i < columns_.size(); ++i) top[i] = part_[i];
    std::size_t switches = 0, domains = 0;
    for (const auto level : {pix, pxb, phb, same_node}) {
      const auto before = top;
      join_related(sets, level);
      std::map<std::size_t, std::vector<std::size_t>> members;
      for (const auto& [set, part] : before) members[sets.find_set(set)].push_back(part);
      top.clear();
      for (const auto& [set, parts] : members) {
        const bool is_domain = level == same_node;
        if (parts.size() < 2 && !is_domain) {
          top[set] = parts.front();
          continue;
        }
        const auto here = result_.add(
            part_kind::switch_,
            is_domain ? fmt::format("cpu{}", domains++)
                      : fmt::format("{}{}", level == phb ? "bridge" : "pcie", switches++),
            0);
        for (const auto p : parts) {
          result_.join(p, here, rate, known_.pcie_latency, link_kind::pcie);
        }
        top[set] = here;
      }
    }
    std::vector<std::size_t> cpus;
    for (const auto& [set, part] : top) cpus.push_back(part);
    for (std::size_t a = 0; a < cpus.size(); ++a) {
      for (std::size_t b = a + 1; b < cpus.size(); ++b) {
        result_.join(cpus[a], cpus[b], known_.socket_rate, known_.socket_latency, link_kind::pcie);
      }
    }
    assume(fmt::format("PCIe at {:g} GT/s x16, {}", device_->pcie, to_string(rate)));
    if (cpus.size() > 1) {
      assume(fmt::format("CPU domains are joined at {}", to_string(known_.socket_rate)));
    }
    warn_of_numa();
  }

  template <typename Sets>
  void join_related(Sets& sets, relation level) const {
    for (std::size_t a = 0; a < rows_.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const auto& c = rows_[a].cells[b];
        const bool same_cpus = level == same_node && (c.how == nvlink || c.how == unknown) &&
                               !rows_[a].affinity.empty() && rows_[a].affinity == rows_[b].affinity;
        if ((c.how != self && c.how <= level) || same_cpus) sets.union_set(a, b);
      }
    }
  }

  void warn_of_numa() {
    for (const auto g : columns_of(true)) {
      if (!rows_[g].affinity.empty() && rows_[g].numa_known) continue;
      warn(
          "NUMA hidden: no affinity, as in a virtual machine or container; which socket a GPU is "
          "on is known from its PCIe relations alone");
      return;
    }
  }

  void add_nvlinks() {
    const auto gpus = columns_of(true);
    const auto rate = device_->nvlink_rate;
    if (const int links = nvlinks_to_switch(); links > 0) {
      const auto hub = result_.add(part_kind::switch_, "nvswitch0", 0);
      for (const auto g : gpus) {
        result_.join(part_[g], hub, rate * links, known_.nvlink_latency / 2, link_kind::nvlink);
      }
      assume(fmt::format("{} a GPU lead to an NVSwitch: more pairs than a GPU has links",
                         counted(static_cast<std::size_t>(links), "NVLink")));
    } else {
      for (const auto a : gpus) {
        for (const auto b : gpus) {
          const int n = rows_[a].cells[b].nvlinks;
          if (a < b && n > 0)
            result_.join(part_[a], part_[b], rate * n, known_.nvlink_latency, link_kind::nvlink);
        }
      }
    }
    int most = 0;
    for (const auto g : gpus) most = std::max(most, nvlinks_of(g));
    if (most == 0) return;
    assume(fmt::format("an NVLink carries {} each way", to_string(rate)));
    for (const auto g : gpus) {
      if (nvlinks_of(g) == 0)
        warn(fmt::format("{} has no NVLink, others have: its traffic takes PCIe", columns_[g]));
    }
  }

  const source& from_;
  const settings& given_;
  const hardware& known_;
  topology result_;
  std::vector<std::string> columns_;
  std::vector<row> rows_;          ///< one a column
  std::vector<std::size_t> part_;  ///< by column
  const known_device* device_ = &known_.unknown;
};

}  // namespace

topology read_nvidia_smi(const source& from, const settings& given) {
  return reader(from, given).read();
}

}  // namespace attnsim::formats
