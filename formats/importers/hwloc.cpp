// hwloc's XML (`lstopo --of xml`, versions 1 to 3): <object>s in each other: the machine with packages, NUMA nodes and caches,
// below those of a locality host bridges (type Bridge, bridge_type 0-1), PCI bridges (1-1) and PCI devices (PCIDev), with
// pci_type "CLASS [VENDOR:DEVICE] ...", pci_link_speed in GB/s and, below, the drivers' names (OSDev). Links between GPUs are
// in <distances2hetero name="NVLinkBandwidth"> or "XGMIBandwidth": objects by type and gp_index, and a matrix in MB/s, also
// to NVSwitches (PCIDev). github.com/open-mpi/hwloc hwloc/topology-xml.c, topology-nvml.c, topology-rsmi.c
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "formats/card.hpp"
#include "formats/importers/table.hpp"
#include "formats/xml.hpp"

namespace attnsim::formats {
namespace {

constexpr double most_link_speed = 1e4;  ///< GB/s
constexpr std::size_t most_linked = 4096;

using element = pugi::xml_node;

std::string_view type_of(element e) {
  return e.attribute("type").value();
}

std::string_view class_of(element pci) {
  return std::string_view(pci.attribute("pci_type").value()).substr(0, 4);
}

/// [VENDOR:DEVICE].
std::int64_t pci_id(element pci) {
  const std::string_view text = pci.attribute("pci_type").value();
  const auto colon = text.find(':');
  std::int64_t id = 0;
  if (colon != std::string_view::npos)
    std::from_chars(text.data() + colon + 1, text.data() + text.size(), id, 16);
  return id;
}

/// 3D controllers, processing accelerators, and displays of NVIDIA and AMD: a server's own graphics are no such.
bool is_gpu(element e) {
  if (type_of(e) != "PCIDev") return false;
  const auto kind = class_of(e);
  const std::string_view text = e.attribute("pci_type").value();
  const bool maker = text.find("[10de:") != std::string_view::npos ||
                     text.find("[1002:") != std::string_view::npos;
  return kind == "0302" || kind == "1200" || ((kind == "0300" || kind == "0380") && maker);
}

bool is_nic(element e) {
  return type_of(e) == "PCIDev" && class_of(e).starts_with("02");
}

/// A NIC that RDMA drives.
bool has_rdma(element nic) {
  return !nic.find_node([](element e) {
               return std::string_view(e.attribute("name").value()) == "NodeGUID";
             })
              .empty();
}

class hwloc_reader {
 public:
  hwloc_reader(const source& from, const settings& given)
      : from_(from), xml_(from, "topology"), given_(given), known_(known_hardware()) {}

  topology read() {
    collect(xml_.root());
    if (gpus_.empty()) fail_without_gpus();
    identify_device();
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      part_of_[gpus_[g]] = result_.add(part_kind::device, fmt::format("gpu{}", g), 0);
    }
    choose_nics();
    add_locality(xml_.root());
    join_domains();
    add_links();
    say_what_was_read();
    return std::move(result_);
  }

 private:
  void assume(const std::string& line) { result_.said.assumed.push_back(line); }
  void miss(const std::string& line) { result_.said.missing.push_back(line); }

  void collect(element parent) {
    for (const auto e : parent.children("object")) {
      if (is_gpu(e)) gpus_.push_back(e);
      if (is_nic(e)) nics_.push_back(e);
      ++types_[std::string(type_of(e))];
      collect(e);
    }
  }

  [[noreturn]] void fail_without_gpus() const {
    const auto count = [&](const char* type) {
      const auto found = types_.find(type);
      return found == types_.end() ? std::size_t{0} : found->second;
    };
    xml_.fail(
        xml_.root(),
        fmt::format("hwloc's topology has {}, {}, {} and no GPU; expected PCI devices, as "
                    "`lstopo --of xml` writes them on a node with GPUs",
                    counted(count("Package"), "package"), counted(count("NUMANode"), "NUMA node"),
                    counted(count("PCIDev"), "PCI device")));
  }

  void identify_device() {
    device_ = &find_card(from_, given_, {.pci_id = pci_id(gpus_.front())}, result_);
  }

  /// Those that RDMA drives, where there are any; a server's others carry no traffic of attention.
  void choose_nics() {
    const auto all = nics_.size();
    if (std::any_of(nics_.begin(), nics_.end(), has_rdma))
      std::erase_if(nics_, [](element e) { return !has_rdma(e); });
    for (std::size_t n = 0; n < nics_.size(); ++n) {
      part_of_[nics_[n]] = result_.add(part_kind::nic, fmt::format("nic{}", n), 0);
    }
    if (nics_.size() < all)
      assume(fmt::format("{} without RDMA carry no traffic of attention: left out",
                         counted(all - nics_.size(), "NIC")));
    if (nics_.empty()) return;
    result_.nic_rate =
        given_.nic_rate > bandwidth{} ? given_.nic_rate : known_.nic_rate(device_->pcie);
    if (given_.nic_rate > bandwidth{}) return;
    miss("speed of the NICs: --nic-bandwidth");
    assume(fmt::format("NICs of {}, made for PCIe at {:g} GT/s", to_string(result_.nic_rate),
                       device_->pcie));
  }

  bool has_parts(element e) const {
    return part_of_.contains(e) ||
           std::any_of(e.children("object").begin(), e.children("object").end(),
                       [&](element child) { return has_parts(child); });
  }

  /// An object that host bridges hang on is a CPU domain.
  void add_locality(element parent) {
    for (const auto e : parent.children("object")) {
      if (type_of(e) != "Bridge" && type_of(e) != "PCIDev") {
        add_locality(e);
      } else if (has_parts(e)) {
        add_pci(e, domain_of(parent));
      }
    }
  }

  std::size_t domain_of(element locality) {
    const auto [place, is_new] = domains_.try_emplace(locality, 0);
    if (is_new)
      place->second = result_.add(part_kind::switch_, fmt::format("cpu{}", domains_.size() - 1), 0);
    return place->second;
  }

  /// A bridge that leads to several is a PCIe switch, one that leads to one is its port.
  void add_pci(element e, std::size_t parent) {
    if (const auto part = part_of_.find(e); part != part_of_.end()) {
      result_.join(part->second, parent, rate_of(e), known_.pcie_latency, link_kind::pcie);
      return;
    }
    std::vector<element> below;
    for (const auto child : e.children("object")) {
      if (has_parts(child)) below.push_back(child);
    }
    auto here = parent;
    const bool is_host_bridge =
        std::string_view(e.attribute("bridge_type").value()).starts_with("0-");
    if (below.size() > 1 && !is_host_bridge) {
      here = result_.add(part_kind::switch_, fmt::format("pcie{}", switches_++), 0);
      result_.join(here, parent, rate_of(e), known_.pcie_latency, link_kind::pcie);
    }
    for (const auto child : below) add_pci(child, here);
  }

  /// In the file, else of the card's slot.
  bandwidth rate_of(element pci) {
    const double speed = pci.attribute("pci_link_speed")
                             ? xml_.number(pci, "pci_link_speed", 0, most_link_speed)
                             : 0;
    if (speed > 0) return bandwidth(speed * 1e9);
    ++speeds_missing_;
    return pcie_rate(device_->pcie, 16);
  }

  void join_domains() {
    for (auto a = domains_.begin(); a != domains_.end(); ++a) {
      for (auto b = std::next(a); b != domains_.end(); ++b)
        result_.join(a->second, b->second, known_.socket_rate, known_.socket_latency,
                     link_kind::pcie);
    }
    if (domains_.size() > 1)
      assume(fmt::format("CPU domains are joined at {}", to_string(known_.socket_rate)));
    if (speeds_missing_ > 0) {
      assume(fmt::format("{} whose speed the file leaves out: {:g} GT/s x16",
                         counted(speeds_missing_, "PCIe link"), device_->pcie));
    }
  }

  void add_links() {
    std::size_t matrices = 0;
    for (const auto* kind : {"distances2", "distances2hetero"}) {
      for (const auto e : xml_.root().children(kind)) {
        const std::string_view name = e.attribute("name").value();
        if (name != "NVLinkBandwidth" && name != "XGMIBandwidth") continue;
        add_matrix(e);
        ++matrices;
      }
    }
    if (matrices == 0 && device_->nvlinks > 0 && gpus_.size() > 1) {
      result_.said.warnings.push_back(
          fmt::format("{} has {}, the file no NVLinkBandwidth or XGMIBandwidth: PCIe alone joins "
                      "the GPUs; hwloc tells links where it "
                      "was built with NVML or ROCm SMI",
                      device_->name,
                      counted(static_cast<std::size_t>(device_->nvlinks), device_->link_name())));
    }
  }

  /// The words of all elements of a name, one after the other.
  static std::vector<std::string> words_in(element parent, const char* name) {
    std::vector<std::string> all;
    for (const auto e : parent.children(name)) {
      for (const auto word : words_of(e.child_value())) all.emplace_back(word);
    }
    return all;
  }

  void add_matrix(element e) {
    const auto indexes = words_in(e, "indexes"), values = words_in(e, "u64values");
    const auto n = indexes.size();
    if (n > most_linked || values.size() != n * n) {
      xml_.fail(e, fmt::format("<{}>: expected a matrix of {} x {} values, found {}", e.name(), n,
                               n, values.size()));
    }
    std::vector<std::optional<std::size_t>> ends;
    for (const auto& index : indexes) ends.push_back(end_of(index));
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = a + 1; b < n; ++b) {
        const auto rate = to_number<double>(values[a * n + b]);
        if (!rate || !(*rate >= 0 && *rate < 1e9))
          xml_.fail(e, fmt::format("<{}>: '{}': expected MB/s", e.name(), values[a * n + b]));
        if (*rate > 0 && ends[a] && ends[b] && *ends[a] != *ends[b])
          add_link(*ends[a], *ends[b], *rate * 1e6);
      }
    }
    for (const auto& [pair, rate] : links_) {
      const bool hub = pair.second == hub_;
      result_.join(pair.first, pair.second, bandwidth(rate), known_.nvlink_latency / (hub ? 2 : 1),
                   link_kind::nvlink);
    }
    links_.clear();
  }

  /// NVSwitches act as one.
  void add_link(std::size_t a, std::size_t b, double rate) {
    if (b < a) std::swap(a, b);
    links_[{a, b}] += rate;
  }

  /// "OSDev:814", "PCIDev:449", or a bare gp_index: a GPU, the NVSwitch, a CPU domain; nothing: none of these.
  std::optional<std::size_t> end_of(const std::string& index) {
    const auto number = index.substr(index.find(':') + 1);
    const auto e =
        xml_.root().find_node([&](element o) { return number == o.attribute("gp_index").value(); });
    for (auto at = e; at; at = at.parent()) {
      if (const auto part = part_of_.find(at); part != part_of_.end()) return part->second;
      if (const auto domain = domains_.find(at); domain != domains_.end() && at == e)
        return domain->second;
    }
    if (type_of(e) != "PCIDev") return {};
    if (!hub_) hub_ = result_.add(part_kind::switch_, "nvswitch0", 0);
    return hub_;
  }

  void say_what_was_read() {
    result_.said.read = {
        fmt::format("{}, {}, {}, {}", counted(gpus_.size(), "GPU"), counted(nics_.size(), "NIC"),
                    counted(switches_, "PCIe switch"), counted(domains_.size(), "CPU domain"))};
  }

  const source& from_;
  xml_file xml_;
  const settings& given_;
  const hardware& known_;
  topology result_{.what = scope::node};
  std::map<std::string, std::size_t> types_;  ///< objects by type
  std::vector<element> gpus_, nics_;          ///< in the order of the file
  std::map<element, std::size_t> part_of_;    ///< of GPUs and NICs
  std::map<element, std::size_t> domains_;    ///< by what host bridges hang on
  std::size_t switches_ = 0, speeds_missing_ = 0;
  std::map<std::pair<std::size_t, std::size_t>, double> links_;  ///< bytes/s by two parts
  std::optional<std::size_t> hub_;                               ///< the NVSwitches
  const known_device* device_ = &known_.unknown;
};

topology read_hwloc(const source& from, const settings& given) {
  return hwloc_reader(from, given).read();
}

}  // namespace

const importer importers::hwloc{
    .name = "hwloc",
    .what = "hwloc XML: lstopo --of xml",
    .reads =
        "GPUs and NICs with their PCIe switches, link speeds and CPU domains; NVLink or XGMI "
        "bandwidths where hwloc knew them",
    .assumes =
        "NIC rates of the slot, the sockets' link; NICs without RDMA are left out where others "
        "have it",
    .refuses = "no GPU among the PCI devices, matrices of another size than their objects",
    .recognises = [](std::string_view text) { return xml_root_name(text) == "topology"; },
    .read = read_hwloc,
};

}  // namespace attnsim::formats
