// What `rocm-smi --showtopo` prints of AMD GPUs: a table a question, of which weight, hops and link type of each pair, and
// the NUMA node of each GPU.
//
//     ========================== Link Type between two GPUs ==========================
//            GPU0         GPU1
//     GPU0   0            XGMI
//     GPU1   XGMI         0
//     ================================== Numa Nodes ==================================
//     GPU[0]      : (Topology) Numa Node: 0
//
// XGMI over one hop is a link of its own; how many lanes it has is not told. Other pairs meet over PCIe and the CPUs.
// github.com/ROCm/rocm_smi_lib python_smi_tools/rocm_smi.py, showHwTopology
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "formats/card.hpp"
#include "formats/importers/table.hpp"

namespace attnsim::formats {
namespace {

constexpr std::size_t most_smi_gpus = 1024;

bool is_title(std::string_view line) {
  return trimmed(line).starts_with("===");
}

/// GPU0 GPU1 ...: all of a line.
bool is_header(const std::vector<std::string_view>& words) {
  return !words.empty() && words.front() == "GPU0" &&
         std::all_of(words.begin(), words.end(),
                     [](auto w) { return w.starts_with("GPU") && to_number<int>(w.substr(3)); });
}

class rocm_smi_reader {
 public:
  rocm_smi_reader(const source& from, const settings& given)
      : from_(from), given_(given), known_(known_hardware()), lines_(lines_of(from.text)) {}

  topology read() {
    const auto types = read_table("Link Type");
    if (types.empty()) fail_at(from_, 1, "expected the table 'Link Type between two GPUs'");
    types_ = types;
    hops_ = read_table("Hops");
    if (!hops_.empty() && hops_.size() != types_.size())
      fail_at(from_, 1, "expected tables of the same GPUs");
    read_numa_nodes();
    find_links();
    device_ = &find_card(from_, given_, {.gfx = gfx()}, result_);
    if (device_ == &known_.unknown) take_the_first();
    add_parts();
    add_links();
    return std::move(result_);
  }

 private:
  using table = std::vector<std::vector<std::string_view>>;

  /// The cells below a title that has these words, by row and column; empty: no such table.
  table read_table(std::string_view title) const {
    auto line = std::find_if(lines_.begin(), lines_.end(), [&](const auto& l) {
      return is_title(l.text) && l.text.find(title) != std::string_view::npos;
    });
    if (line == lines_.end()) return {};
    const auto columns =
        ++line == lines_.end() ? std::vector<std::string_view>{} : words_of(line->text);
    if (!is_header(columns) || columns.size() > most_smi_gpus)
      fail_at(from_, std::prev(line)->number,
              "expected a line of column names below: GPU0 GPU1 ...");
    table rows;
    for (++line; rows.size() < columns.size(); ++line) {
      const auto words =
          line == lines_.end() ? std::vector<std::string_view>{} : words_of(line->text);
      const auto& name = columns[rows.size()];
      if (words.empty() || words.front() != name) {
        fail_at(from_, std::prev(line)->number,
                fmt::format("the table ends after {} of {} rows: row {} is missing", rows.size(),
                            columns.size(), name));
      }
      if (words.size() != columns.size() + 1) {
        fail_at(from_, line->number,
                fmt::format("row {}: expected {} cells, found {}", name, columns.size(),
                            words.size() - 1));
      }
      rows.emplace_back(words.begin() + 1, words.end());
    }
    return rows;
  }

  /// "GPU[3] : (Topology) Numa Node: 1".
  void read_numa_nodes() {
    numa_.assign(types_.size(), 0);
    for (const auto& [number, text] : lines_) {
      const auto words = words_of(text);
      if (words.size() != 6 || words[3] != "Numa" || words[4] != "Node:" ||
          !words[0].starts_with("GPU["))
        continue;
      const auto gpu = to_number<std::size_t>(words[0].substr(4, words[0].find(']') - 4));
      const auto node = to_number<int>(words[5]);
      if (!gpu || *gpu >= numa_.size())
        fail_at(from_, number, "GPU", words[0],
                fmt::format("expected GPU[0] to GPU[{}]", numa_.size() - 1));
      if (!node || *node < -1)
        fail_at(from_, number, "Numa Node", words[5], "expected a whole number");
      numa_[*gpu] = *node;
      numa_told_ = true;
    }
  }

  /// Each pair's type, which is the same both ways.
  void find_links() {
    for (std::size_t a = 0; a < types_.size(); ++a) {
      for (std::size_t b = 0; b < types_.size(); ++b) {
        if (a == b) continue;
        const auto type = types_[a][b];
        if (type != "XGMI" && type != "PCIE") {
          throw input_error(fmt::format("{}: GPU{} to GPU{}", from_.name, a, b), std::string(type),
                            "expected XGMI or PCIE");
        }
        if (types_[b][a] != type) {
          throw input_error(
              fmt::format("{}: GPU{} to GPU{} and back differ: expected a symmetric table",
                          from_.name, std::min(a, b), std::max(a, b)));
        }
        if (type == "XGMI") ++(hops(a, b) == 1 ? direct_ : indirect_);
      }
    }
  }

  int hops(std::size_t a, std::size_t b) const {
    return hops_.empty() ? 1 : to_number<int>(hops_[a][b]).value_or(1);
  }

  std::string gfx() const {
    const auto at = from_.text.find("gfx");
    if (at == std::string::npos) return "";
    const auto end = from_.text.find_first_not_of("0123456789abcdef", at + 3);
    return from_.text.substr(at, end - at);
  }

  /// XGMI has a rate, so some card must be assumed.
  void take_the_first() {
    if (direct_ + indirect_ == 0) return;
    std::vector<std::string> names;
    for (const auto& d : known_.devices) {
      if (d.gfx.empty()) continue;
      if (names.empty()) device_ = &d;
      names.push_back(d.name);
    }
    result_.device = device_->profile;
    result_.device_doubt = fmt::format("XGMI fits {}", fmt::join(names, ", "));
    result_.said.warnings.push_back(fmt::format(
        "the GPUs are taken for {}, but {}: add the output of `rocm-smi --showproductname`",
        device_->name, result_.device_doubt));
  }

  void add_parts() {
    const auto rate = pcie_rate(device_->pcie, 16);
    for (std::size_t g = 0; g < types_.size(); ++g) {
      result_.add(part_kind::device, fmt::format("gpu{}", g), 0);
    }
    std::map<int, std::size_t> sockets;
    for (std::size_t g = 0; g < types_.size(); ++g) {
      const auto [place, is_new] = sockets.try_emplace(numa_[g], 0);
      if (is_new)
        place->second =
            result_.add(part_kind::switch_, fmt::format("cpu{}", sockets.size() - 1), 0);
      result_.join(g, place->second, rate, known_.pcie_latency, link_kind::pcie);
    }
    for (auto a = sockets.begin(); a != sockets.end(); ++a) {
      for (auto b = std::next(a); b != sockets.end(); ++b)
        result_.join(a->second, b->second, known_.socket_rate, known_.socket_latency,
                     link_kind::pcie);
    }
    auto& said = result_.said;
    said.read.push_back(fmt::format("{}, {}, {}", counted(types_.size(), "GPU"),
                                    counted(direct_ / 2, "XGMI link"),
                                    counted(sockets.size(), "NUMA node")));
    said.missing.push_back("NICs: `rocm-smi` prints none");
    said.assumed.push_back(
        fmt::format("PCIe at {:g} GT/s x16, {}", device_->pcie, to_string(rate)));
    if (sockets.size() > 1)
      said.assumed.push_back(
          fmt::format("CPU domains are joined at {}", to_string(known_.socket_rate)));
    if (!numa_told_)
      said.warnings.push_back("NUMA hidden: which socket a GPU is on is not told; one is assumed");
  }

  void add_links() {
    for (std::size_t a = 0; a < types_.size(); ++a) {
      for (std::size_t b = a + 1; b < types_.size(); ++b) {
        if (types_[a][b] == "XGMI" && hops(a, b) == 1)
          result_.join(a, b, device_->nvlink_rate, known_.nvlink_latency, link_kind::nvlink);
      }
    }
    if (direct_ > 0) {
      result_.said.assumed.push_back(
          fmt::format("an XGMI link of {}, one a pair, carries {} each way", device_->name,
                      to_string(device_->nvlink_rate)));
    }
    if (indirect_ > 0) {
      result_.said.warnings.push_back(
          fmt::format("{} of GPUs reach each other by XGMI over others: their traffic takes one "
                      "other GPU, else PCIe",
                      counted(indirect_ / 2, "pair")));
    }
  }

  const source& from_;
  const settings& given_;
  const hardware& known_;
  std::vector<text_line> lines_;
  topology result_{.what = scope::node};
  table types_, hops_;
  std::vector<int> numa_;  ///< by GPU
  bool numa_told_ = false;
  std::size_t direct_ = 0, indirect_ = 0;  ///< XGMI, both ways counted
  const known_device* device_ = nullptr;
};

topology read_rocm_smi(const source& from, const settings& given) {
  return rocm_smi_reader(from, given).read();
}

}  // namespace

const importer importers::rocm_smi{
    .name = "rocm-smi",
    .what = "rocm-smi --showtopo",
    .reads = "link type and hops of each pair of GPUs, NUMA nodes",
    .assumes =
        "one XGMI link a pair, rates of the card, which --showproductname beside it tells; no NICs",
    .refuses = "tables that are cut or not symmetric, other link types than XGMI and PCIE",
    .recognises =
        [](std::string_view text) {
          return text.find("Link Type between two GPUs") != std::string_view::npos;
        },
    .read = read_rocm_smi,
};

}  // namespace attnsim::formats
