#include <unistd.h>

#include <ctime>
#include <fstream>
#include <string_view>
#include <thread>

#include "kernels/backends.hpp"
#include "validate/measure.hpp"
#include "validate/transports/nccl.hpp"

namespace attnsim::validate {
namespace {

/// The rest of the first line that begins with `key`.
std::string line_of(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const auto value = line.find_first_not_of(" \t:", key.size());
    return value == std::string::npos ? "" : line.substr(value);
  }
  return "";
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[11];
  std::strftime(text, sizeof text, "%F", std::gmtime(&now));
  return text;
}

}  // namespace

std::map<std::string, std::string> describe_machine() {
  std::map<std::string, std::string> all{
      {"date", today()},
      {"processor", line_of("/proc/cpuinfo", "model name")},
      {"cores", std::to_string(std::thread::hardware_concurrency())},
      {"driver", line_of("/proc/driver/nvidia/version", "NVRM version")}};
  for (const auto& b : kernels::backends()) {
    if (b.present()) all.merge(b.versions());
  }
  if (has_nccl()) all["nccl"] = nccl_version();
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view variable = *entry;
    const auto equals = variable.find('=');
    if (variable.starts_with("NCCL_") || variable.starts_with("CUDA_"))
      all[std::string(variable.substr(0, equals))] = variable.substr(equals + 1);
  }
  std::erase_if(all, [](const auto& entry) { return entry.second.empty(); });
  return all;
}

}  // namespace attnsim::validate
