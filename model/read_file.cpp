#include "model/read_file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "model/error.hpp"
#include "model/plain_text.hpp"

namespace attnsim {

std::string read_bytes(std::istream& stream, const std::string& name) {
  std::string bytes;
  char chunk[1 << 16];
  while (stream.read(chunk, sizeof chunk), stream.gcount() > 0) {
    bytes.append(chunk, static_cast<std::size_t>(stream.gcount()));
    if (bytes.size() > largest_file) throw input_error(fmt::format("{}: larger than 64 MiB", name));
  }
  if (stream.bad()) throw input_error(fmt::format("{}: cannot be read", name));
  return bytes;
}

std::string read_bytes(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) throw input_error(fmt::format("{}: cannot be read: {}", path, error.message()));
  if (size > largest_file) throw input_error(fmt::format("{}: larger than 64 MiB", path));
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw input_error(fmt::format("{}: cannot be read", path));
  return read_bytes(stream, path);
}

std::string read_file(const std::string& path) {
  return plain_text(read_bytes(path));
}

}  // namespace attnsim
