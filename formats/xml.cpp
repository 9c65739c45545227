#include "formats/xml.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace attnsim::formats {
namespace {

constexpr int deepest_element = 64;

std::size_t line_at(std::string_view text, std::ptrdiff_t offset) {
  const auto end = std::clamp<std::ptrdiff_t>(offset, 0, std::ssize(text));
  return 1 + static_cast<std::size_t>(std::count(text.begin(), text.begin() + end, '\n'));
}

}  // namespace

xml_file::xml_file(const source& from, std::string_view root_name) : from_(from) {
  const auto result =
      document_.load_buffer(from.text.data(), from.text.size(),
                            pugi::parse_default | pugi::parse_doctype, pugi::encoding_utf8);
  if (!result) {
    fail_at(from_, line_at(from_.text, result.offset),
            fmt::format("not well-formed XML: {}; is the file cut short?", result.description()));
  }
  for (const auto node : document_.children()) {
    if (node.type() == pugi::node_doctype &&
        std::string_view(node.value()).find('[') != std::string_view::npos) {
      fail_at(from_, 1, "expected XML without declarations of its own (<!DOCTYPE ... [...]>)");
    }
  }
  if (root().name() != root_name) {
    fail(root(), fmt::format("expected the element <{}>", root_name));
  }
  int depth = 1;
  for (auto node = root(); node;) {
    if (node.first_child()) {
      node = node.first_child();
      if (++depth > deepest_element)
        fail(node, fmt::format("nested more than {} deep", deepest_element));
      continue;
    }
    while (node && node != root() && !node.next_sibling()) {
      node = node.parent();
      --depth;
    }
    if (!node || node == root()) break;
    node = node.next_sibling();
  }
}

std::size_t xml_file::line_of(pugi::xml_node node) const {
  return line_at(from_.text, node.offset_debug());
}

void xml_file::fail(pugi::xml_node node, const std::string& message) const {
  fail_at(from_, line_of(node), message);
}

void xml_file::fail(pugi::xml_node node, const char* key, std::string_view expected) const {
  const auto attribute = node.attribute(key);
  if (!attribute) fail(node, fmt::format("<{}> {}: missing", node.name(), key));
  fail_at(from_, line_of(node), fmt::format("<{}> {}", node.name(), key), attribute.value(),
          expected);
}

std::string xml_file::text(pugi::xml_node node, const char* key) const {
  const auto attribute = node.attribute(key);
  if (!attribute) fail(node, key, "");
  return attribute.value();
}

int xml_file::integer(pugi::xml_node node, const char* key, int least, int most) const {
  const auto value = to_number<int>(text(node, key));
  if (!value || *value < least || *value > most) {
    fail(node, key, fmt::format("expected a whole number from {} to {}", least, most));
  }
  return *value;
}

double xml_file::number(pugi::xml_node node, const char* key, double least, double most) const {
  const auto value = to_number<double>(text(node, key));
  if (!value || !(*value >= least && *value <= most)) {
    fail(node, key, fmt::format("expected a number from {:g} to {:g}", least, most));
  }
  return *value;
}

std::string_view xml_root_name(std::string_view text) {
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    if (!text.starts_with('<')) return {};
    if (!text.starts_with("<?") && !text.starts_with("<!")) break;
    const bool is_comment = text.starts_with("<!--");
    const bool has_subset = !is_comment && text.find('[') < text.find('>');  // <!DOCTYPE a [...]>
    const std::string_view close = is_comment ? "-->" : ">";
    const auto end = text.find(close, has_subset ? text.find(']') : 0);
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + close.size());
  }
  text.remove_prefix(1);
  return text.substr(0, text.find_first_of(" \t\r\n/>"));
}

}  // namespace attnsim::formats
