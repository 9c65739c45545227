// TACCL's topologies (JSON): the GPUs of a node, alpha and 1/bandwidth of its links and of the NICs.
// Which GPUs are linked is not in the file but in TACCL's code, by its name: NDv2 (a hybrid cube
// mesh of V100, two classes of links); else a switch joins all with one class (DGX2). Times
// are in units that differ from file to file: chosen so that `remote_alpha` is 2.6 us, which makes
// them agree. Cost of a chunk: alpha + beta; the chunk's size is the end of the name (1KB, 1MB).
// github.com/microsoft/taccl taccl/topologies/generic.py, taccl/examples/topo
#include <fmt/format.h>

#include <cmath>

#include "formats/card.hpp"
#include "formats/hardware.hpp"
#include "formats/importers/table.hpp"
#include "formats/json.hpp"

namespace attnsim::formats {
namespace {

using nlohmann::json;

constexpr int deepest = 16, most_gpus = 1024;
constexpr double alpha_remote = 2.6e-6;  ///< s

class taccl_reader {
 public:
  taccl_reader(const source& from, const settings& given)
      : from_(from), given_(given), root_(parse_json(from, deepest)) {
    if (!root_.is_object()) fail_at(from, 1, "expected an object of keys and values");
  }

  topology read() {
    const auto name = text("name");
    const int gpus = integer("gpus_per_node"), nics = integer("nics_per_node");
    const bool cube = name.starts_with("NDv2");
    const auto classes = list("node_betas_list");
    if (classes.size() != (cube ? 2 : 1)) {
      fail("node_betas_list", root_["node_betas_list"].dump(),
           cube ? "expected two classes of links for NDv2" : "expected one class of links");
    }
    if (cube && gpus != 8) fail("gpus_per_node", std::to_string(gpus), "expected 8 for NDv2");
    const double unit = alpha_remote / number("remote_alpha"), chunk = chunk_size(name);
    const auto rate = [&](double beta) { return bandwidth(chunk / (beta * unit)); };
    const seconds alpha(number("alpha") * unit);

    topology t{.what = scope::node};
    find_card(from_, given_, {}, t);
    for (int g = 0; g < gpus; ++g) t.add(part_kind::device, fmt::format("gpu{}", g), 0);
    for (int n = 0; n < nics; ++n) t.add(part_kind::nic, fmt::format("nic{}", n), 0);
    const auto part = [](int i) { return static_cast<std::size_t>(i); };
    if (!cube) {
      const auto hub = t.add(part_kind::switch_, "nvswitch0", 0);
      for (int g = 0; g < gpus; ++g) {
        t.join(part(g), hub, rate(classes[0]), alpha / 2, link_kind::nvlink);
      }
    }
    const auto* mesh = known_hardware().mesh("V100 SXM2", 8);  // NDv2's
    for (int a = 0; cube && a < gpus; ++a) {
      for (int b = a + 1; b < gpus; ++b) {
        const int links = mesh->links[part(a)][part(b)];
        if (links == 0) continue;
        t.join(part(a), part(b), rate(classes[links == 2 ? 0 : 1]), alpha, link_kind::nvlink);
      }
    }
    t.nic_rate = rate(number("remote_beta"));
    for (int g = 0; g < gpus; ++g) {
      t.join(part(g), part(gpus + g * nics / gpus), t.nic_rate, {}, link_kind::pcie);
    }
    t.said.read = {fmt::format("{}, {}, {}", counted(part(gpus), "GPU"), counted(part(nics), "NIC"),
                               counted(t.cables.size() - part(gpus), "NVLink"))};
    t.said.assumed.push_back(
        fmt::format("times in units of {}, chunks of {:g} B; links as TACCL's code "
                    "has them for {}",
                    to_string(seconds(unit)), chunk, name));
    return t;
  }

 private:
  [[noreturn]] void fail(const std::string& key, const std::string& value,
                         const std::string& expected) const {
    const auto at = from_.text.find('"' + key + '"');
    const auto end =
        from_.text.begin() + static_cast<std::ptrdiff_t>(at == std::string::npos ? 0 : at);
    fail_at(from_, 1 + static_cast<std::size_t>(std::count(from_.text.begin(), end, '\n')), key,
            value, expected);
  }

  const json& at(const std::string& key) const {
    if (!root_.contains(key)) fail_at(from_, 1, key + ": missing");
    return root_.at(key);
  }
  std::string text(const std::string& key) const {
    if (!at(key).is_string()) fail(key, at(key).dump(), "expected text");
    return at(key).get<std::string>();
  }
  double number_of(const std::string& key, const json& value) const {
    const bool fits = value.is_number() && value.get<double>() > 1e-9 && value.get<double>() < 1e9;
    if (!fits) fail(key, value.dump(), "expected a number above 0");
    return value.get<double>();
  }
  double number(const std::string& key) const { return number_of(key, at(key)); }
  int integer(const std::string& key) const {
    const auto& value = at(key);
    if (!value.is_number_integer() || value < 1 || value > most_gpus) {
      fail(key, value.dump(), fmt::format("expected a whole number from 1 to {}", most_gpus));
    }
    return value.get<int>();
  }
  std::vector<double> list(const std::string& key) const {
    if (!at(key).is_array()) fail(key, at(key).dump(), "expected a list of numbers");
    std::vector<double> numbers;
    for (const auto& value : at(key)) numbers.push_back(number_of(key, value));
    return numbers;
  }

  /// "NDv2_32KB": 32768 bytes.
  double chunk_size(const std::string& name) const {
    const auto last = name.substr(name.rfind('_') + 1);
    const double factor = last.ends_with("KB") ? 1 << 10 : last.ends_with("MB") ? 1 << 20 : 0;
    const auto size = to_number<int>(
        std::string_view(last).substr(0, last.size() - std::min<std::size_t>(2, last.size())));
    if (factor == 0 || !size || *size < 1) {
      fail("name", name, "expected the chunk's size at the end, such as NDv2_1MB");
    }
    return *size * factor;
  }

  const source& from_;
  const settings& given_;
  json root_;
};

topology read_taccl(const source& from, const settings& given) {
  return taccl_reader(from, given).read();
}

}  // namespace

const importer importers::taccl{
    .name = "taccl",
    .what = "TACCL topology JSON",
    .reads = "GPUs and NICs of a node, alpha and beta of its links and NICs",
    .assumes =
        "units, such that remote_alpha is 2.6 us; which GPUs are linked, from TACCL's code by the "
        "file's name",
    .refuses =
        "several classes of links for another machine than NDv2, names without the chunk's size",
    .recognises =
        [](std::string_view text) {
          return first_letter(text) == '{' &&
                 text.find("\"gpus_per_node\"") != std::string_view::npos;
        },
    .read = read_taccl,
};

}  // namespace attnsim::formats
