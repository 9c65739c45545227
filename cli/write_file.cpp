#include "cli/write_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string_view>
#include <system_error>
#include <utility>

#include "model/error.hpp"

namespace attnsim::cli {
namespace {

namespace fs = std::filesystem;

/// Why a file cannot be written: a code of <cerrno>, and the folder that it is about where it is not about the file.
struct refusal {
  int code = 0;
  fs::path folder;
};

[[noreturn]] void refuse(const named_file& file, const refusal& why) {
  const auto reason = std::generic_category().message(why.code);
  throw input_error(file.flag, file.path,
                    why.folder.empty()
                        ? fmt::format("expected a file that can be written ({})", reason)
                        : fmt::format("expected a file in a folder that can be written ({}: {})",
                                      why.folder.string(), reason));
}

/// "." for a file of the current folder.
fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

/// What a path stands for, with its symbolic links followed, whether or not it exists.
struct destination {
  fs::path path;
  struct stat there {};
  int missing = 0;      ///< why nothing is there; zero: something is
  int descriptor = -1;  ///< of an open one, as /dev/stdout

  bool is_in_place() const { return descriptor >= 0 || (missing == 0 && !S_ISREG(there.st_mode)); }
};

int descriptor_at(const fs::path& path) {
  std::error_code error;
  const auto open_ones = fs::canonical("/proc/self/fd", error);
  if (error || fs::canonical(folder_of(path), error) != open_ones) return -1;
  const auto name = path.filename().string();
  int number = -1;
  std::from_chars(name.data(), name.data() + name.size(), number);
  return number;
}

destination find(const fs::path& named) {
  constexpr int most_links = 40;  // as the kernel
  destination to{.path = named};
  if (stat(named.c_str(), &to.there) != 0) to.missing = errno;
  std::error_code error;
  for (int i = 0; i < most_links && fs::is_symlink(to.path, error); ++i) {
    if (to.descriptor = descriptor_at(to.path); to.descriptor >= 0) break;
    to.path = folder_of(to.path) / fs::read_symlink(to.path, error);
  }
  return to;
}

refusal why_not_in(const fs::path& folder) {
  struct stat there {};
  if (stat(folder.c_str(), &there) != 0) return {.code = errno, .folder = folder};
  if (!S_ISDIR(there.st_mode)) return {.code = ENOTDIR, .folder = folder};
  if (access(folder.c_str(), W_OK | X_OK) != 0) return {.code = errno, .folder = folder};
  return {};
}

/// Without opening it: to open a FIFO is to wait for its reader.
refusal why_not(const destination& to) {
  if (to.descriptor >= 0) return {};
  if (to.missing == 0) {
    if (S_ISDIR(to.there.st_mode)) return {.code = EISDIR};
    if (access(to.path.c_str(), W_OK) != 0) return {.code = errno};
    if (to.is_in_place()) return {};
  } else if (to.missing != ENOENT && to.missing != ENOTDIR) {
    return {.code = to.missing};
  }
  return why_not_in(folder_of(to.path));
}

bool is_same(const destination& a, const destination& b) {
  if (a.missing == 0 && b.missing == 0)
    return a.there.st_dev == b.there.st_dev && a.there.st_ino == b.there.st_ino;
  if (a.missing == 0 || b.missing == 0) return false;
  std::error_code error;
  return a.path.filename() == b.path.filename() &&
         fs::equivalent(folder_of(a.path), folder_of(b.path), error);
}

/// Closed at the end.
class open_file {
 public:
  explicit open_file(int descriptor) : descriptor_(descriptor) {}
  open_file(const open_file&) = delete;
  ~open_file() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

  bool write(std::string_view text) const {
    while (!text.empty()) {
      const auto written = ::write(descriptor_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return false;
      text.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
  }

  bool close() { return ::close(std::exchange(descriptor_, -1)) == 0; }

 private:
  int descriptor_;
};

/// In the folder of `path`, by a name that nobody can know before.
std::pair<fs::path, int> open_beside(const fs::path& path) {
  std::random_device any;
  while (true) {
    const auto name = folder_of(path) / fmt::format(".attnsim-{:08x}{:08x}", any(), any());
    const int opened = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (opened >= 0 || errno != EEXIST) return {name, opened};
  }
}

/// Zero, or what went wrong.
int replace(const destination& to, const std::string& text) {
  const auto [name, descriptor] = open_beside(to.path);
  open_file file(descriptor);
  if (!file.is_open()) return errno;
  if (to.missing == 0) {  // it keeps its owner, where the system lets it, and who may read it
    [[maybe_unused]] const int owner = fchown(file.descriptor(), to.there.st_uid, to.there.st_gid);
    fchmod(file.descriptor(), to.there.st_mode & 0777);
  }
  if (file.write(text) && file.close() && std::rename(name.c_str(), to.path.c_str()) == 0) return 0;
  const int failure = errno;
  unlink(name.c_str());
  return failure;
}

int write_in_place(const destination& to, const std::string& text) {
  std::fflush(stdout);  // which may be the same
  open_file file(to.descriptor >= 0 ? dup(to.descriptor)
                                    : open(to.path.c_str(), O_WRONLY | O_CLOEXEC));
  return file.is_open() && file.write(text) && file.close() ? 0 : errno;
}

}  // namespace

void check_files(const std::vector<named_file>& outputs, const std::vector<named_file>& inputs) {
  std::vector<std::pair<named_file, destination>> others;
  for (const auto& input : inputs) {
    if (!input.path.empty()) others.emplace_back(input, find(input.path));
  }
  destination printed;
  if (fstat(STDOUT_FILENO, &printed.there) == 0)
    others.push_back({{"standard output", ""}, printed});
  for (const auto& output : outputs) {
    if (output.path.empty()) continue;
    auto to = find(output.path);
    if (const auto why = why_not(to); why.code != 0) refuse(output, why);
    if (to.is_in_place()) continue;
    for (const auto& [other, its] : others) {
      if (is_same(to, its))
        throw input_error(output.flag, output.path, "expected another file than " + other.flag);
    }
    others.emplace_back(output, std::move(to));
  }
}

void write_file(const std::string& flag, const std::string& path, const std::string& text) {
  const auto to = find(path);
  if (const auto why = why_not(to); why.code != 0) refuse({flag, path}, why);
  const int failure = to.is_in_place() ? write_in_place(to, text) : replace(to, text);
  if (failure != 0) refuse({flag, path}, {.code = failure});
}

}  // namespace attnsim::cli
