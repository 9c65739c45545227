#pragma once

#include <cstdlib>
#include <fstream>
#include <string>

namespace attnsim {

/// A folder of its own for one test, removed at the end.
class temporary_folder {
 public:
  temporary_folder() {
    std::string pattern = "/tmp/attnsim-test-XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~temporary_folder() { std::system(("rm -rf " + path_).c_str()); }
  temporary_folder(const temporary_folder&) = delete;

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name)) << text;
    return file(name);
  }

 private:
  std::string path_;
};

}  // namespace attnsim
