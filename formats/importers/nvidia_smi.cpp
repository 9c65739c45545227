// What `nvidia-smi topo -m` prints: a matrix of GPUs and NICs (smi_matrix.hpp). A cell is NV# (that
// many NVLinks) or the closest way over PCIe: PIX (one switch) < PXB (several) < PHB (a host bridge)
// < NODE (a NUMA domain) < SYS. From these a tree of switches and CPU domains is built: what is
// related at a level shares a switch of that level.
#include <fmt/format.h>

#include <algorithm>
#include <boost/pending/disjoint_sets.hpp>
#include <map>
#include <numeric>

#include "formats/card.hpp"
#include "formats/hardware.hpp"
#include "formats/importers/table.hpp"
#include "formats/smi_matrix.hpp"

namespace attnsim::formats {
namespace {

constexpr int most_nvlinks_of_gpu = 18;  ///< more to all peers together: through a switch

bool is_gpu(std::string_view name) {
  return name.starts_with("GPU");
}

class nvidia_smi_reader {
 public:
  nvidia_smi_reader(const source& from, const settings& given)
      : from_(from), given_(given), known_(known_hardware()), matrix_(read_smi_matrix(from)) {}

  topology read() {
    say_what_is_missing();
    identify_device();
    add_parts();
    add_tree();
    add_nvlinks();
    return std::move(result_);
  }

 private:
  void assume(const std::string& line) { result_.said.assumed.push_back(line); }
  void miss(const std::string& line) { result_.said.missing.push_back(line); }
  const std::vector<smi_row>& rows() const { return matrix_.rows; }

  void warn(const std::string& line) { result_.said.warnings.push_back(line); }

  void say_what_is_missing() {
    if (matrix_.another_follows) {
      warn("another matrix follows the first: not read; a file a node makes several nodes");
    }
    if (matrix_.rows_missing == 0) return;
    miss(fmt::format(
        "{} of the matrix: the paste is cut short{}", counted(matrix_.rows_missing, "row"),
        matrix_.pairs_unknown == 0
            ? "; the other rows tell the same"
            : fmt::format(", {} of NICs unknown", counted(matrix_.pairs_unknown, "pair"))));
  }

  std::vector<std::size_t> columns_of(bool gpus) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < rows().size(); ++i) {
      if (is_gpu(rows()[i].name) == gpus) found.push_back(i);
    }
    return found;
  }

  int nvlinks_of(std::size_t gpu) const {
    int sum = 0;
    for (const auto& c : rows()[gpu].cells) sum += c.nvlinks;
    return sum;
  }

  /// Every GPU has links to a switch that joins all: more than one GPU has to its peers.
  int nvlinks_to_switch() const {
    const auto gpus = columns_of(true);
    const int first = gpus.size() > 1 ? rows()[gpus[0]].cells[gpus[1]].nvlinks : 0;
    for (const auto a : gpus) {
      for (const auto b : gpus) {
        if (a != b && rows()[a].cells[b].nvlinks != first) return 0;
      }
    }
    return first * (static_cast<int>(gpus.size()) - 1) > most_nvlinks_of_gpu ? first : 0;
  }

  void identify_device() {
    int most = nvlinks_to_switch();
    if (most == 0) {
      for (const auto g : columns_of(true)) most = std::max(most, nvlinks_of(g));
    }
    device_ = &find_card(from_, given_, {.links = most, .grace = matrix_.grace}, result_);
  }

  void add_parts() {
    part_.resize(rows().size());
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
    if (rows().size() == 1 && rows().front().affinity.empty()) return;
    std::vector<std::size_t> ranks(rows().size()), parents(rows().size());
    boost::disjoint_sets sets(ranks.data(), parents.data());
    for (std::size_t i = 0; i < rows().size(); ++i) sets.make_set(i);
    std::map<std::size_t, std::size_t> top;  // set -> part that stands for it
    for (std::size_t i = 0; i < rows().size(); ++i) top[i] = part_[i];
    std::size_t switches = 0, domains = 0;
    for (const auto level :
         {smi_relation::pix, smi_relation::pxb, smi_relation::phb, smi_relation::node}) {
      const auto before = top;
      join_related(sets, level);
      std::map<std::size_t, std::vector<std::size_t>> members;
      for (const auto& [set, part] : before) members[sets.find_set(set)].push_back(part);
      top.clear();
      for (const auto& [set, parts] : members) {
        const bool is_domain = level == smi_relation::node;
        if (parts.size() < 2 && !is_domain) {
          top[set] = parts.front();
          continue;
        }
        const auto here = result_.add(
            part_kind::switch_,
            is_domain
                ? fmt::format("cpu{}", domains++)
                : fmt::format("{}{}", level == smi_relation::phb ? "bridge" : "pcie", switches++),
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
  void join_related(Sets& sets, smi_relation level) const {
    for (std::size_t a = 0; a < rows().size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const auto& c = rows()[a].cells[b];
        const bool same_cpus = level == smi_relation::node &&
                               (c.how == smi_relation::nvlink || c.how == smi_relation::unknown) &&
                               !rows()[a].affinity.empty() &&
                               rows()[a].affinity == rows()[b].affinity;
        if ((c.how != smi_relation::self && c.how <= level) || same_cpus) sets.union_set(a, b);
      }
    }
  }

  void warn_of_numa() {
    for (const auto g : columns_of(true)) {
      if (!rows()[g].affinity.empty() && rows()[g].numa_known) continue;
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
          const int n = rows()[a].cells[b].nvlinks;
          if (a < b && n > 0)
            result_.join(part_[a], part_[b], rate * n, known_.nvlink_latency, link_kind::nvlink);
        }
      }
    }
    int most = 0;
    for (const auto g : gpus) most = std::max(most, nvlinks_of(g));
    if (most == 0) return warn_of_hidden_nvlinks();
    assume(fmt::format("an NVLink carries {} each way", to_string(rate)));
    for (const auto g : gpus) {
      if (nvlinks_of(g) == 0)
        warn(fmt::format("{} has no NVLink, others have: its traffic takes PCIe", rows()[g].name));
    }
  }

  void warn_of_hidden_nvlinks() {
    const bool known = device_ != &known_.unknown;
    if (columns_of(true).size() < 2 || (known && device_->nvlinks == 0)) return;
    warn(fmt::format("no NVLink in the matrix: {}; `topo -m` shows it",
                     matrix_.without_nvlink ? "`topo -mp` hides it"
                     : known ? fmt::format("{} has it, `topo -mp` hides it", device_->name)
                             : "true of GPUs that have none, but `topo -mp` hides it"));
  }

  const source& from_;
  const settings& given_;
  const hardware& known_;
  smi_matrix matrix_;
  topology result_;
  std::vector<std::size_t> part_;  ///< by column
  const known_device* device_ = &known_.unknown;
};

topology read_nvidia_smi(const source& from, const settings& given) {
  return nvidia_smi_reader(from, given).read();
}

}  // namespace

const importer importers::nvidia_smi{
    .name = "nvidia-smi",
    .what = "nvidia-smi topo -m",
    .reads =
        "the matrix wherever it stands in the text: NVLinks between GPUs, the closest way over "
        "PCIe, CPU affinities",
    .assumes =
        "PCIe and NVLink rates of the card; NIC rates of its slot; an NVSwitch where a GPU has "
        "more NVLinks to its peers than links",
    .refuses =
        "rows of GPUs that are missing, cells that are glued with two readings, an asymmetric "
        "matrix",
    .recognises = [](std::string_view text) { return has_smi_matrix(text); },
    .read = read_nvidia_smi,
    .reads_prompts = true,
};

}  // namespace attnsim::formats
