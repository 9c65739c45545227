#include "formats/importer.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>

#include "formats/importers/table.hpp"
#include "model/spelling.hpp"

namespace attnsim::formats {
namespace {

const importer& find_importer(const source& from, const std::string& as,
                              std::span<const importer> all) {
  for (const auto& i : all) {
    if (as.empty() ? i.recognises(from.text) : i.name == as) return i;
  }
#ifndef ATTNSIM_HAS_PUGIXML
  if (trimmed(from.text).starts_with('<')) {
    throw input_error(
        from.name +
        ": this build reads no XML: install pugixml (libpugixml-dev) and configure again");
  }
#endif
  if (!as.empty()) throw input_error("--as", as, expected_one_of(as, names_in(all)));
  throw input_error(
      fmt::format("{}: of no known format; --as one of: {}", from.name, names_of(all)));
}

/// The text with blank lines for all that stands outside the first markdown fence; `others` counts further fences.
std::string inside_fence(const std::string& text, std::size_t& others) {
  constexpr std::string_view fence = "```";
  std::string inside;
  std::size_t fences = 0;
  for (const auto line : split(text, '\n')) {
    const bool is_fence = trimmed(line).starts_with(fence);
    fences += is_fence;
    if (!is_fence && fences == 1) inside += line;
    inside += '\n';
  }
  others = fences > 2 ? (fences - 1) / 2 : 0;
  return fences > 0 ? inside : text;
}

}  // namespace

std::span<const importer> known_importers() {
#define ATTNSIM_LIST(name) importers::name,
  static const importer all[] = {ATTNSIM_IMPORTERS(ATTNSIM_LIST)};
#undef ATTNSIM_LIST
  return all;
}

std::string names_of(std::span<const importer> all) {
  std::string names;
  for (const auto& i : all) names += fmt::format("{}{}", names.empty() ? "" : ", ", i.name);
  return names;
}

topology read_topology(const source& given_text, const settings& given, const std::string& as,
                       std::span<const importer> all) {
  std::size_t other_fences = 0;
  const source from{given_text.name, inside_fence(given_text.text, other_fences)};
  const source plain{from.name, without_prompts(from.text)};
  const auto& importer = find_importer(plain, as, all);
  try {
    auto result = importer.read(importer.reads_prompts ? from : plain, given);
    const auto file = std::filesystem::path(from.name).filename().string();
    for (auto* list : {&result.said.read, &result.said.assumed, &result.said.missing}) {
      for (auto& line : *list) line = fmt::format("{}: {}", file, line);
    }
    if (other_fences > 0) {
      result.said.warnings.push_back(fmt::format("{}: {} after the first: not read", file,
                                                 counted(other_fences, "fenced block")));
    }
    return result;
  } catch (const std::length_error& e) {
    throw input_error(fmt::format("{}: {}", from.name, e.what()));
  }
}

}  // namespace attnsim::formats
