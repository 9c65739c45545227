// NCCL's topology XML (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE): <system> of <cpu> (one a NUMA domain),
// in them nested <pci>, in those <gpu> with <nvlink>, or <nic> with <net>. Files shipped by clouds
// often hold <cpu> and <pci> alone: then PCI classes tell GPUs (0x03...., 0x12....) and NICs (0x02....), and
// where even these are missing, what hangs on PCIe switches are NICs. speed of <net>: Mb/s of a
// port. count of <nvlink> and of AMD's <xgmi>: links; their target is another GPU or an NVSwitch.
// <c2c>: count links of bw MB/s to the CPU. Grammar: github.com/NVIDIA/nccl and ROCm/rccl,
// src/graph/xml.cc and topo.cc.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "formats/card.hpp"
#include "formats/hardware.hpp"
#include "formats/importers/table.hpp"
#include "formats/xml.hpp"

namespace attnsim::formats {
namespace {

constexpr double most_speed = 1e8;  ///< Mb/s
constexpr int most_nvlinks = 64;

enum class pci_role { gpu, nic, switch_ };

struct gpu {
  pugi::xml_node pci;  ///< null: assumed
  int node = 0;
  std::size_t part = 0;

  pugi::xml_node element() const { return pci.child("gpu"); }
  std::string bus() const { return pci.attribute("busid").value(); }
};

struct nic {
  bandwidth rate;  ///< zero: not in the file
  std::size_t part = 0;
  std::size_t on = 0;        ///< part it hangs on
  double gigatransfers = 0;  ///< of its slot; 0: not in the file
  int node = 0;
  int cards = 1;
};

class nccl_topology_reader {
 public:
  nccl_topology_reader(const source& from, const settings& given)
      : from_(from), xml_(from, "system"), given_(given), known_(known_hardware()) {}

  topology read() {
    check_elements();
    find_gpus();
    for (const auto& [cpu, node] : cpus()) read_cpu(cpu, node);
    if (sockets_.empty()) xml_.fail(xml_.root(), "expected at least one <cpu>");
    identify_device();
    result_.said.read = {
        fmt::format("{}, {}, {}, {}", counted(gpus_.size(), "GPU"), counted(nics_.size(), "NIC"),
                    counted(switches_, "PCIe switch"), counted(sockets_.size(), "CPU domain"))};
    if (!classes_) assume_gpus();
    if (gpus_.empty()) xml_.fail(xml_.root(), "expected at least one GPU or PCIe switch of NICs");
    join_sockets();
    add_nics();
    join_gpus();
    return std::move(result_);
  }

 private:
  using element = pugi::xml_node;

  void assume(const std::string& line) { result_.said.assumed.push_back(line); }
  void miss(const std::string& line) { result_.said.missing.push_back(line); }
  void warn(const std::string& line) { result_.said.warnings.push_back(line); }

  static bool is_direct(element e) {
    const std::string_view name = e.name();
    return name == "nvlink" || name == "xgmi";
  }

  /// What this nccl_topology_reader does not know is left out with a warning, but a link is never left out.
  void check_elements() {
    const std::set<std::string_view> known{"system", "cpu", "pci", "gpu", "nvlink",
                                           "xgmi",   "c2c", "nic", "net"};
    std::map<std::string, std::size_t> others;
    // <pcilink> joins PCIe switches that are parts of one.
    for (const auto& path : xml_.root().select_nodes("//*")) {
      const auto e = path.node();
      if (known.contains(e.name())) continue;
      for (const auto* link : {"target", "count", "bw", "speed", "link_speed"}) {
        if (e.attribute(link) && std::string_view(e.name()) != "pcilink")
          xml_.fail(e, fmt::format("<{}> {}: a link of a kind that is not known here; expected "
                                   "nvlink, xgmi, c2c, pci or net",
                                   e.name(), link));
      }
      ++others[e.name()];
    }
    for (const auto& [name, count] : others)
      warn(fmt::format("{} <{}>: not known, left out", counted(count, "element"), name));
  }

  /// With the number of the node that each belongs to.
  std::vector<std::pair<element, int>> cpus() const {
    std::vector<std::pair<element, int>> found;
    std::map<std::string, int> hosts;
    for (const auto cpu : xml_.root().children("cpu")) {
      const std::string hash = cpu.attribute("host_hash").value();
      const int next = static_cast<int>(hosts.size());
      found.emplace_back(cpu, hosts.try_emplace(hash, next).first->second);
    }
    return found;
  }

  /// Adds the devices first, in NCCL's order, or by bus id where the file does not number them.
  void find_gpus() {
    classes_ =
        !xml_.root()
             .find_node([](element e) {
               return *e.attribute("class").value() != '\0' || std::string_view(e.name()) == "gpu";
             })
             .empty();
    for (const auto& [cpu, node] : cpus()) find_gpus(cpu, node);
    const auto order = [this](const gpu& g) {
      const auto number = g.element().attribute("dev");
      return std::tuple(g.node, number ? xml_.integer(g.element(), "dev", 0, 1 << 20) : 0, g.bus());
    };
    std::stable_sort(gpus_.begin(), gpus_.end(),
                     [&](const gpu& a, const gpu& b) { return order(a) < order(b); });
    for (auto& g : gpus_) {
      g.part = add_gpu(g.node);
      part_of_[g.pci] = g.part;
    }
  }

  void find_gpus(element parent, int node) {
    for (const auto pci : parent.children("pci")) {
      if (role_of(pci) == pci_role::gpu) {
        gpus_.push_back({pci, node});
      } else {
        find_gpus(pci, node);
      }
    }
  }

  std::size_t add_gpu(int node) {
    return result_.add(part_kind::device, fmt::format("gpu{}", gpus_of_node_[node]++), node);
  }

  pci_role role_of(element pci) const {
    const std::string_view kind = pci.attribute("class").value();
    if (pci.child("gpu") || kind.starts_with("0x03") || kind.starts_with("0x12"))
      return pci_role::gpu;
    if (pci.child("nic") || kind.starts_with("0x02")) return pci_role::nic;
    if (!classes_ && !pci.child("pci")) return pci_role::nic;
    return pci_role::switch_;
  }

  /// GT/s a lane and lanes; 0 GT/s where the file does not tell.
  std::pair<double, int> speed_of(element pci) const {
    const std::string_view text = pci.attribute("link_speed").value();
    const auto number = text.substr(0, text.find(' '));
    const auto speed = to_number<double>(number);
    if (text.empty() || number == "Unknown") return {0, 16};
    if (!speed || !(*speed > 0 && *speed <= 1024) || text.find("GT/s") == std::string_view::npos) {
      xml_.fail(pci, "link_speed", "expected a PCIe speed, such as 16 GT/s");
    }
    const int width = pci.attribute("link_width") ? xml_.integer(pci, "link_width", 0, 32) : 16;
    return {width == 0 ? 0 : *speed, width};
  }

  bandwidth rate_of(element pci) {
    auto [speed, width] = speed_of(pci);
    if (speed == 0) {
      speed_missing_ = true;
      return {};
    }
    return pcie_rate(speed, width);
  }

  void read_cpu(element cpu, int node) {
    const int numa = cpu.attribute("numaid") ? xml_.integer(cpu, "numaid", -1, 1 << 20) : -1;
    if (numa < 0) {
      warn(
          "NUMA hidden: numaid -1, as in a virtual machine; which socket a NIC or GPU is on is "
          "not known");
    }
    const auto socket =
        result_.add(part_kind::switch_, fmt::format("cpu{}", sockets_.size()), node);
    sockets_.push_back(socket);
    for (const auto pci : cpu.children("pci")) read_pci(pci, socket, node);
    for (const auto e : cpu.children("nic")) read_nic(e, socket, 0, node);
  }

  void read_pci(element pci, std::size_t parent, int node) {
    const auto speed = speed_of(pci).first;
    switch (role_of(pci)) {
      case pci_role::gpu:
        fastest_ = std::max(fastest_, speed);
        socket_of_[part_of_.at(pci)] = sockets_.back();
        result_.join(part_of_.at(pci), parent, rate_of(pci), known_.pcie_latency, link_kind::pcie);
        return;
      case pci_role::nic:
        if (pci.child("nic")) {
          read_nic(pci.child("nic"), parent, speed, node);
        } else {
          add_nic({}, parent, speed, node);
        }
        fastest_ = std::max(fastest_, speed);
        return;
      case pci_role::switch_:
        break;
    }
    const auto here = result_.add(part_kind::switch_, fmt::format("pcie{}", switches_++), node);
    result_.join(here, parent, rate_of(pci), known_.pcie_latency, link_kind::pcie);
    if (speed > 0 && speed < slowest_child(pci)) {
      slow_switches_.push_back(pci);
    }
    for (const auto child : pci.children("pci")) read_pci(child, here, node);
  }

  double slowest_child(element pci) const {
    double slowest = 0;
    for (const auto child : pci.children("pci")) {
      const auto speed = speed_of(child).first;
      if (speed > 0 && (slowest == 0 || speed < slowest)) slowest = speed;
    }
    return slowest;
  }

  /// One card; its ports add up.
  void read_nic(element e, std::size_t parent, double speed, int node) {
    bandwidth rate;
    for (const auto net : e.children("net")) {
      if (net.attribute("speed")) {
        rate += bandwidth(xml_.number(net, "speed", 0, most_speed) * 1e6 / 8);
      }
    }
    add_nic(rate, parent, speed, node);
  }

  void add_nic(bandwidth rate, std::size_t parent, double speed, int node) {
    nics_.push_back({rate, 0, parent, speed, node});
  }

  void identify_device() {
    const auto pci = gpus_.empty() ? element{} : gpus_.front().pci;
    card_hints told{.pci_id = pci.attribute("device").as_llong(),
                    .gfx = pci.child("gpu").attribute("gcn").value()};
    if (told.gfx.empty()) told.sm = pci.child("gpu").attribute("sm").as_int();
    for (const auto link : pci.child("gpu").children()) {
      if (is_direct(link)) told.links += link.attribute("count").as_int();
    }
    if (told.sm == 0 && told.gfx.empty()) told.pcie = fastest_;
    device_ = &find_card(from_, given_, told, result_);
  }

  /// A file of NICs alone: one GPU a PCIe switch that has NICs.
  void assume_gpus() {
    std::size_t last = result_.parts.size();
    for (const auto& n : nics_) {
      if (n.on == last || result_.parts[n.on].name.starts_with("cpu")) continue;
      last = n.on;
      gpus_.push_back({{}, n.node, add_gpu(n.node)});
      result_.join(gpus_.back().part, n.on, pcie_rate(device_->pcie, 16), known_.pcie_latency,
                   link_kind::pcie);
    }
    miss("GPUs: the file lists none");
    assume(fmt::format("{}: one on each PCIe switch that has NICs", counted(gpus_.size(), "GPU")));
  }

  void join_sockets() {
    for (std::size_t a = 0; a < sockets_.size(); ++a) {
      for (std::size_t b = a + 1; b < sockets_.size(); ++b) {
        if (result_.parts[sockets_[a]].node != result_.parts[sockets_[b]].node) continue;
        result_.join(sockets_[a], sockets_[b], known_.socket_rate, known_.socket_latency,
                     link_kind::pcie);
      }
    }
    if (sockets_.size() > 1) {
      assume(fmt::format("CPU domains are joined at {}", to_string(known_.socket_rate)));
    }
    if (!slow_switches_.empty()) {
      const auto slow = slow_switches_.front();
      warn(
          fmt::format("{}, the first {}: linked at {:g} GT/s, the devices behind at {:g}; taken "
                      "as written, but idle links are often dumped too slow",
                      counted(slow_switches_.size(), "PCIe switch"),
                      slow.attribute("busid").value(), speed_of(slow).first, slowest_child(slow)));
    }
    if (!speed_missing_) return;
    const auto rate = pcie_rate(device_->pcie, 16);
    for (auto& c : result_.cables) {
      if (c.rate == bandwidth{}) c.rate = rate;
    }
    assume(fmt::format("PCIe links whose speed the file leaves out: {:g} GT/s x16, {}",
                       device_->pcie, to_string(rate)));
  }

  /// The rate where no <net> tells it: the user's, else by the slot; NICs that outnumber the GPUs
  /// share it.
  bandwidth assumed_nic_rate() {
    if (given_.nic_rate > bandwidth{}) return given_.nic_rate;
    double slot = device_->pcie;
    for (const auto& n : nics_) slot = n.gigatransfers > 0 ? n.gigatransfers : slot;
    const auto share = std::max<std::size_t>(1, nics_.size() / gpus_.size());
    const auto rate = known_.nic_rate(slot) / static_cast<double>(share);
    miss("speed of the NICs: --nic-bandwidth");
    assume(fmt::format("NICs of {}: the slot's {:g} GT/s{}", to_string(rate), slot,
                       share > 1 ? fmt::format(", {} NICs a GPU share it", share) : ""));
    return rate;
  }

  /// NICs on one switch that outnumber its GPUs serve a GPU together: they become one.
  void merge_nics() {
    std::map<std::size_t, std::size_t> gpus_on;
    for (const auto& c : result_.cables) {
      if (result_.parts[c.from].kind == part_kind::device) ++gpus_on[c.to];
    }
    std::vector<nic> merged;
    std::size_t most = 1;
    for (auto first = nics_.begin(); first != nics_.end();) {
      const auto last = std::find_if(first, nics_.end(), [&](const nic& n) {
        return n.on != first->on || n.rate != first->rate;
      });
      const auto nics = static_cast<std::size_t>(last - first);
      const auto gpus = gpus_on.contains(first->on) ? gpus_on[first->on] : nics;
      const auto together = nics % gpus == 0 ? nics / gpus : 1;
      for (auto n = first; n != last; n += static_cast<std::ptrdiff_t>(together)) {
        merged.push_back(*n);
        merged.back().rate = n->rate * static_cast<double>(together);
        merged.back().cards = static_cast<int>(together);
      }
      most = std::max(most, together);
      first = last;
    }
    nics_ = std::move(merged);
    if (most > 1) assume(fmt::format("{} NICs serve one GPU together: given as one", most));
  }

  /// Adds the NICs of the fastest kind.
  void add_nics() {
    if (nics_.empty()) return;
    const bool told =
        std::any_of(nics_.begin(), nics_.end(), [](const nic& n) { return n.rate > bandwidth{}; });
    const auto rate_if_missing = told ? bandwidth{} : assumed_nic_rate();
    for (auto& n : nics_) {
      if (!told) n.rate = rate_if_missing;
    }
    merge_nics();
    for (const auto& n : nics_) result_.nic_rate = std::max(result_.nic_rate, n.rate);
    std::size_t left_out = 0, number = 0;
    for (auto& n : nics_) {
      if (n.rate < result_.nic_rate) {
        ++left_out;
        continue;
      }
      n.part = result_.add(part_kind::nic, fmt::format("nic{}", number++), n.node);
      const auto slot = n.gigatransfers > 0 ? pcie_rate(n.gigatransfers, 16) * n.cards : n.rate;
      result_.join(n.part, n.on, slot, known_.pcie_latency, link_kind::pcie);
    }
    if (left_out > 0) {
      assume(fmt::format("{} slower than {} carry no traffic of attention: left out",
                         counted(left_out, "NIC"), to_string(result_.nic_rate)));
    }
    if (given_.nic_rate > bandwidth{}) result_.nic_rate = given_.nic_rate;
  }

  void join_gpus() {
    std::map<std::pair<int, std::string>, const gpu*> by_bus;
    bool any_element = false;
    for (const auto& g : gpus_) {
      by_bus.emplace(std::pair(g.node, g.bus()), &g);
      any_element = any_element || g.element();
    }
    if (!any_element) return assume_nvlinks();
    std::map<std::size_t, int> to_switch;                       // GPU -> links
    std::map<std::pair<std::size_t, std::size_t>, int> to_gpu;  // pair -> links
    std::map<std::size_t, int> links_of;
    for (const auto& g : gpus_) {
      join_to_cpu(g);
      for (const auto e : g.element().children()) {
        if (!is_direct(e)) continue;
        const int count = xml_.integer(e, "count", 1, most_nvlinks);
        const auto target = by_bus.find({g.node, xml_.text(e, "target")});
        if (target == by_bus.end()) {
          if (std::string_view(e.attribute("tclass").value()).starts_with("0x03")) {
            xml_.fail(e, "target", "expected the busid of a GPU of this file");
          }
          to_switch[g.part] += count;
        } else if (target->second == &g) {
          lonely_.push_back(&g);
          continue;
        } else {
          auto& known = to_gpu[std::minmax(g.part, target->second->part)];
          known = std::max(known, count);
        }
        links_of[g.part] += count;
      }
    }
    const auto rate = [&](int links) { return device_->nvlink_rate * links; };
    for (const auto& [pair, links] : to_gpu) {
      result_.join(pair.first, pair.second, rate(links), known_.nvlink_latency, link_kind::nvlink);
    }
    for (const auto& [part, links] : to_switch) {
      const int node = result_.parts[part].node;
      result_.join(part, nvswitch_of(node), rate(links), known_.nvlink_latency / 2,
                   link_kind::nvlink);
    }
    if (!links_of.empty()) {
      assume(fmt::format("each {} of {} carries {} each way", device_->link_name(), device_->name,
                         to_string(device_->nvlink_rate)));
    }
    if (!lonely_.empty()) {
      warn(fmt::format(
          "{}, the first {}: {}s to itself; left out, which GPU they lead to is "
          "not in the file",
          counted(lonely_.size(), "GPU"), lonely_.front()->bus(), device_->link_name()));
    }
    check_nvlinks(links_of);
  }

  void check_nvlinks(const std::map<std::size_t, int>& links_of) {
    int most = 0;
    for (const auto& [part, links] : links_of) most = std::max(most, links);
    for (const auto& g : gpus_) {
      const auto found = links_of.find(g.part);
      const int links = found == links_of.end() ? 0 : found->second;
      if (links == most) continue;
      warn(fmt::format("{} ({}) has {}, others {}: its traffic takes another way or is slower",
                       result_.parts[g.part].name, g.bus(),
                       links == 0 ? fmt::format("no {}", device_->link_name())
                                  : counted(static_cast<std::size_t>(links), device_->link_name()),
                       most));
    }
  }

  /// A GPU beside its CPU, as on Grace.
  void join_to_cpu(const gpu& g) {
    for (const auto e : g.element().children("c2c")) {
      const double rate = xml_.number(e, "bw", 1, most_speed) * 1e6;
      const int count = e.attribute("count") ? xml_.integer(e, "count", 1, most_nvlinks) : 1;
      result_.join(g.part, socket_of_.at(g.part), bandwidth(rate) * count, known_.pcie_latency,
                   link_kind::pcie);
    }
  }

  std::size_t nvswitch_of(int node) {
    const auto [place, is_new] = nvswitches_.try_emplace(node, 0);
    if (is_new) place->second = result_.add(part_kind::switch_, "nvswitch0", node);
    return place->second;
  }

  void assume_nvlinks() {
    if (device_->nvlinks == 0 || gpus_.size() < 2) return;
    miss(fmt::format("{}s: the file has no <gpu> elements", device_->link_name()));
    const auto links = fmt::format(
        "{} of {}", counted(static_cast<std::size_t>(device_->nvlinks), device_->link_name()),
        to_string(device_->nvlink_rate));
    if (const auto* mesh = known_.mesh(device_->name, gpus_.size())) {
      assume(fmt::format("{} a GPU, in a hybrid cube mesh", links));
      return join_mesh(*mesh);
    }
    if (!device_->nvswitch) {
      warn(fmt::format(
          "{} has {}, the file does not tell which GPUs they join: PCIe alone joins them here",
          device_->name, links));
      return;
    }
    const auto rate = device_->nvlink_rate * device_->nvlinks;
    for (const auto& g : gpus_) {
      result_.join(g.part, nvswitch_of(g.node), rate, known_.nvlink_latency / 2, link_kind::nvlink);
    }
    assume(fmt::format("{} a GPU to an NVSwitch, {}", links, to_string(rate)));
  }

  void join_mesh(const known_mesh& mesh) {
    for (std::size_t a = 0; a < gpus_.size(); ++a) {
      for (std::size_t b = a + 1; b < gpus_.size(); ++b) {
        const int links = mesh.links[a][b];
        if (links == 0) continue;
        result_.join(gpus_[a].part, gpus_[b].part, device_->nvlink_rate * links,
                     known_.nvlink_latency, link_kind::nvlink);
      }
    }
  }

  const source& from_;
  xml_file xml_;
  const settings& given_;
  const hardware& known_;
  topology result_;
  bool classes_ = true;
  bool speed_missing_ = false;
  std::vector<std::size_t> sockets_;
  std::size_t switches_ = 0;
  std::vector<gpu> gpus_;
  std::vector<nic> nics_;
  std::map<int, std::size_t> nvswitches_;
  std::map<element, std::size_t> part_of_;        ///< of the GPUs
  std::map<std::size_t, std::size_t> socket_of_;  ///< of the GPUs' parts
  std::map<int, int> gpus_of_node_;
  std::vector<element> slow_switches_;  ///< slower than what hangs on them
  std::vector<const gpu*> lonely_;      ///< with NVLinks to themselves
  double fastest_ = 0;                  ///< GT/s
  const known_device* device_ = &known_.unknown;
};

topology read_nccl_topology(const source& from, const settings& given) {
  return nccl_topology_reader(from, given).read();
}

}  // namespace

const importer importers::nccl_topology{
    .name = "nccl-topology",
    .what = "NCCL topology XML: NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE",
    .reads =
        "CPU domains, PCIe switches with link speeds, GPUs with NVLink, XGMI or C2C, NICs with "
        "port speeds; "
        "hosts of one fused file as nodes",
    .assumes =
        "where elements are missing: GPUs by PCI class or one a PCIe switch, NVLink of the card, "
        "NIC rates of the slot; NICs that outnumber the GPUs of a switch are one",
    .refuses =
        "no CPU, no GPU, a link to a GPU that is not in the file, elements that carry links of an "
        "unknown kind",
    .recognises = [](std::string_view text) { return xml_root_name(text) == "system"; },
    .read = read_nccl_topology,
};

}  // namespace attnsim::formats
