#include "model/plain_text.hpp"

#include <algorithm>
#include <boost/locale/encoding_utf.hpp>
#include <string_view>

namespace attnsim {
namespace {

constexpr struct {
  std::string_view letter, plain;
} replacements[] = {
    {"\xef\xbb\xbf", ""},   // U+FEFF, the byte-order mark
    {"\xe2\x80\x8b", ""},   // U+200B, a space of no width
    {"\xc2\xa0", " "},      // U+00A0, a space that does not break
    {"\xe2\x80\xaf", " "},  // U+202F, the same, narrow
    {"\xe2\x80\x87", " "},  // U+2007, the same, as wide as a digit
};

/// UTF-16 with its mark becomes UTF-8.
std::string utf8(std::string bytes) {
  const bool little = bytes.starts_with("\xff\xfe"), big = bytes.starts_with("\xfe\xff");
  if (!little && !big) return bytes;
  std::u16string wide;
  for (std::size_t i = 2; i + 1 < bytes.size(); i += 2) {
    const auto first = static_cast<unsigned char>(bytes[i]);
    const auto second = static_cast<unsigned char>(bytes[i + 1]);
    wide += static_cast<char16_t>(little ? first | second << 8 : first << 8 | second);
  }
  return boost::locale::conv::utf_to_utf<char>(wide);
}

bool within(char c, char least, char most) {
  return least <= c && c <= most;
}

/// The length of the escape that the text begins with; cut short: all of it.
std::size_t escape_length(std::string_view text) {
  if (text.size() < 2) return text.size();
  std::size_t i = 2;
  const auto skip = [&](char least, char most) {
    while (i < text.size() && within(text[i], least, most)) ++i;
  };
  switch (text[1]) {
    case '[':  // CSI: parameters, intermediates, a final letter
      skip('0', '?');
      skip(' ', '/');
      return i < text.size() && within(text[i], '@', '~') ? i + 1 : i;
    case ']':
    case 'P':
    case '^':
    case '_': {  // OSC, DCS, PM, APC: a string up to BEL or ESC '\', within the line
      const auto end = std::min(text.find_first_of("\a\x1b\n", 2), text.size());
      if (text.substr(end).starts_with("\x1b\\")) return end + 2;
      return text.substr(end).starts_with('\a') ? end + 1 : end;
    }
    default:
      i = 1;
      skip(' ', '/');
      return i < text.size() && within(text[i], '0', '~') ? i + 1 : i;
  }
}

/// Appends what the beginning of `text` stands for; the number of bytes it takes.
std::size_t append_plain(std::string_view text, std::string& plain) {
  switch (text.front()) {
    case '\x1b':
      return escape_length(text);
    case '\r': {
      const auto returns = std::min(text.find_first_not_of('\r'), text.size());
      if (returns == text.size() || text[returns] != '\n') plain += '\n';
      return returns;
    }
    default:
      for (const auto& r : replacements) {
        if (!text.starts_with(r.letter)) continue;
        plain += r.plain;
        return r.letter.size();
      }
      plain += text.front();
      return 1;
  }
}

}  // namespace

std::string plain_text(std::string bytes) {
  constexpr std::string_view suspects = "\x1b\r\xef\xe2\xc2";
  const auto text = utf8(std::move(bytes));
  const std::string_view all = text;
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t at = 0; at < all.size();) {
    const auto next = std::min(all.find_first_of(suspects, at), all.size());
    plain.append(all, at, next - at);
    at = next;
    if (at < all.size()) at += append_plain(all.substr(at), plain);
  }
  return plain;
}

}  // namespace attnsim
