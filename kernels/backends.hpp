// The back ends of this build, each described in its own folder: what may run, on which device, with which transports,
// and which kernel of a device profile predicts it.
//
// A new back end is a folder with a target attnsim_kernels_NAME and a function kernels::NAME::describe(), and its name
// in the list of kernels/CMakeLists.txt. Nothing outside its folder asks for it by name.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.hpp"
#include "model/error.hpp"

namespace attnsim::kernels {

struct device_options {
  int local_rank = 0;  ///< among the ranks of this host, to which its devices are dealt out in turn
  int local_ranks = 1;     ///< how many ranks this host has
  bool priorities = true;  ///< false: all streams alike, as frameworks leave them
  bool poison = false;     ///< memory starts as NaN, so that tests notice what nobody wrote
};

struct backend_description {
  std::string name;
  std::string
      profile_kernel;  ///< the kernel of a device profile that it is, with its version: "cudnn-9.19"
  std::vector<std::string>
      transports;                ///< it can run with: inprocess, mpi, nccl; its usual one first
  bool on_host = false;          ///< computes on the host's processors, so small shapes alone
  bool has_graphs = false;       ///< backend::begin_capture()
  bool prepares_shapes = false;  ///< the first call of each shape takes long
  std::function<bool()> present = [] { return true; };  ///< a device for it is here
  /// What its times depend on, by name: card, driver, version of the library.
  std::function<std::map<std::string, std::string>()> versions = [] {
    return std::map<std::string, std::string>();
  };
  std::function<std::unique_ptr<backend>(const device_options&)> make;

  bool runs_with(const std::string& transport) const;
};

/// As kernels/CMakeLists.txt lists them, then those that were added. The first computes everywhere.
const std::vector<backend_description>& backends();

/// Those of kernels/CMakeLists.txt that this build lacks.
std::vector<std::string> backends_left_out();

/// A back end of the program's own. Not while another thread asks for one. std::invalid_argument where the name is taken.
void add_backend(backend_description);

/// input_error for the field that lists the names.
const backend_description& find_backend(const std::string& name,
                                        const location& field = asked("kernel"));

/// Likewise where there is no device for it.
std::unique_ptr<backend> make_device(const std::string& name, const device_options& = {});

}  // namespace attnsim::kernels
