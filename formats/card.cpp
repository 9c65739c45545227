#include "formats/card.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "model/spelling.hpp"

namespace attnsim::formats {
namespace {

constexpr std::size_t beginning = 1 << 16;

/// Whether the words stand in the text, neither in the middle of longer ones. Both are in lower case.
bool has_words(std::string_view text, std::string_view words) {
  const auto in_word = [&](std::size_t i) {
    return i < text.size() && std::isalnum(static_cast<unsigned char>(text[i])) != 0;
  };
  for (auto at = text.find(words); at != std::string_view::npos; at = text.find(words, at + 1)) {
    if (!in_word(at - 1) && !in_word(at + words.size())) return true;
  }
  return false;
}

/// The card whose longest name stands in the text or the file's name; null: none.
const known_device* find_named(const source& from, const hardware& known, std::string& name) {
  const auto file = std::filesystem::path(from.name).filename().string();
  const auto text = lower_case(file + "\n" + from.text.substr(0, beginning));
  const known_device* best = nullptr;
  for (const auto& d : known.devices) {
    for (const auto& candidate : d.names) {
      if (candidate.size() <= name.size() || !has_words(text, lower_case(candidate))) continue;
      name = candidate;
      best = &d;
    }
  }
  return best;
}

bool fits(const known_device& d, const card_hints& h) {
  const bool amd = !h.gfx.empty();
  return amd == !d.gfx.empty() && (!amd || d.gfx == h.gfx) && (h.sm == 0 || amd || d.sm == h.sm) &&
         (h.links == 0 || d.nvlinks == h.links) && (h.pcie == 0 || d.pcie == h.pcie) &&
         (!h.grace || d.grace == *h.grace);
}

/// Without the number of links where no card has it: some may lead nowhere.
std::vector<const known_device*> all_fitting(const hardware& known, const card_hints& h) {
  std::vector<const known_device*> fitting;
  const bool has_chip = h.sm > 0 || !h.gfx.empty();
  if (!has_chip && h.links == 0 && h.pcie == 0) return fitting;
  for (const auto& d : known.devices) {
    if (fits(d, h)) fitting.push_back(&d);
  }
  if (!fitting.empty() || !has_chip || h.links == 0) return fitting;
  auto fewer = h;
  fewer.links = 0;
  return all_fitting(known, fewer);
}

/// "18 NVLinks a GPU, sm 90".
std::string told(const card_hints& h) {
  std::vector<std::string> facts;
  if (h.links > 0) facts.push_back(counted(static_cast<std::size_t>(h.links), "NVLink") + " a GPU");
  if (!h.gfx.empty()) {
    facts.push_back(h.gfx);
  } else if (h.sm > 0) {
    facts.push_back(fmt::format("sm {}", h.sm));
  }
  if (h.pcie > 0) facts.push_back(fmt::format("PCIe at {:g} GT/s", h.pcie));
  if (h.grace) facts.push_back(*h.grace ? "a NUMA node a GPU" : "no NUMA node a GPU");
  return fmt::format("{}", fmt::join(facts, ", "));
}

}  // namespace

const known_device& find_card(const source& from, const settings& given, const card_hints& hints,
                              topology& result) {
  const auto& known = known_hardware();
  if (!given.device.empty()) {
    result.device = given.device;
    return known.by_profile(given.device);
  }
  const auto take = [&](const known_device& d) -> const known_device& {
    result.device = d.profile;
    return d;
  };
  if (const auto* d = known.by_pci_id(hints.pci_id)) return take(*d);
  std::string name;
  if (const auto* d = find_named(from, known, name)) {
    result.said.assumed.push_back(fmt::format("the GPUs are {}, by the name {}", d->name, name));
    return take(*d);
  }
  result.said.missing.push_back("the GPUs' kind: --device");
  const auto fitting = all_fitting(known, hints);
  if (fitting.empty()) return take(known.unknown);
  const auto& first = *fitting.front();
  if (fitting.size() == 1) {
    result.said.assumed.push_back(fmt::format("the GPUs are {}, from {}", first.name, told(hints)));
    return take(first);
  }
  std::vector<std::string> names;
  for (const auto* d : fitting) names.push_back(d->name);
  result.device_doubt = fmt::format("{} fit {}", told(hints), fmt::join(names, ", "));
  result.said.warnings.push_back(fmt::format(
      "the GPUs are taken for {}, but {}: --device names them", first.name, result.device_doubt));
  return take(first);
}

}  // namespace attnsim::formats
