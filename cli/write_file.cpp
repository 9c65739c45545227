#include "cli/write_file.hpp"

#include <filesystem>
#include <fstream>

#include "model/error.hpp"

namespace attnsim::cli {

void write_file(const std::string& flag, const std::string& path, const std::string& text) {
  const std::string partial = path + ".partial";
  std::error_code error;
  {
    std::ofstream stream(partial, std::ios::binary);
    stream << text;
    stream.flush();
    if (!stream) error = std::make_error_code(std::errc::io_error);
  }
  if (!error) std::filesystem::rename(partial, path, error);
  if (!error) return;
  std::error_code ignored;
  std::filesystem::remove(partial, ignored);
  throw input_error(flag, path, "expected a file that can be written");
}

}  // namespace attnsim::cli
