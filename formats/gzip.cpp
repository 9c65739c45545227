#include "formats/gzip.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include "model/error.hpp"
#include "model/read_file.hpp"

namespace attnsim::formats {
namespace {

constexpr std::string_view magic = "\x1f\x8b";
constexpr int gzip_alone = 16 + MAX_WBITS;  ///< zlib.h, inflateInit2

class reader {
 public:
  reader(const std::string& bytes, const std::string& name) : name_(name) {
    if (inflateInit2(&stream_, gzip_alone) != Z_OK) fail("no memory");
    // zlib reads the input through a pointer to non-const.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
  }
  ~reader() { inflateEnd(&stream_); }
  reader(const reader&) = delete;

  std::string read() {
    std::string text;
    while (true) {
      const int state = inflate_more(text);
      if (state == Z_STREAM_END && stream_.avail_in == 0) return text;
      if (state == Z_STREAM_END) {
        inflateReset(&stream_);  // another member follows
      } else if (state != Z_OK) {
        fail(stream_.msg != nullptr ? stream_.msg : "cut short");
      }
    }
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw input_error(fmt::format("{}: not a whole gzip file: {}", name_, what));
  }

  int inflate_more(std::string& text) {
    char chunk[1 << 16];
    stream_.next_out = reinterpret_cast<Bytef*>(chunk);
    stream_.avail_out = sizeof chunk;
    const int state = inflate(&stream_, Z_NO_FLUSH);
    text.append(chunk, sizeof chunk - stream_.avail_out);
    if (text.size() > largest_file) {
      throw input_error(fmt::format("{}: larger than 64 MiB when unpacked", name_));
    }
    return state;
  }

  const std::string& name_;
  z_stream stream_{};
};

}  // namespace

std::string unpacked(std::string bytes, const std::string& name) {
  if (!bytes.starts_with(magic)) return bytes;
  return reader(bytes, name).read();
}

}  // namespace attnsim::formats
