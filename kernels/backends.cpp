#include "kernels/backends.hpp"

#include <algorithm>
#include <stdexcept>

#include "model/spelling.hpp"

namespace attnsim::kernels {

std::vector<backend_description> built_backends();  // written by CMake: built_backends.cpp.in

namespace {

std::vector<backend_description>& all() {
  static std::vector<backend_description> known = built_backends();
  return known;
}

const backend_description* known(const std::string& name) {
  const auto found =
      std::find_if(all().begin(), all().end(), [&](const auto& b) { return b.name == name; });
  return found == all().end() ? nullptr : &*found;
}

}  // namespace

bool backend_description::runs_with(const std::string& transport) const {
  return std::find(transports.begin(), transports.end(), transport) != transports.end();
}

const std::vector<backend_description>& backends() {
  return all();
}

void add_backend(backend_description b) {
  if (known(b.name)) throw std::invalid_argument("back end " + b.name + " is there already");
  all().push_back(std::move(b));
}

const backend_description& find_backend(const std::string& name, const location& field) {
  if (const auto* found = known(name)) return *found;
  throw input_error(field, name, expected_one_of(name, names_in(all())));
}

std::unique_ptr<backend> make_device(const std::string& name, const device_options& options) {
  const auto& b = find_backend(name);
  if (!b.present()) throw input_error(asked("kernel"), name, "there is no device for it here");
  return b.make(options);
}

}  // namespace attnsim::kernels
