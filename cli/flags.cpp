#include "cli/flags.hpp"

#include <algorithm>

#include "model/topology_files.hpp"

namespace attnsim::cli {
namespace {

constexpr const char* quiet_means = "no progress and no notes on stderr";

}  // namespace

void add_cluster_name(CLI::App& app, std::string& name) {
  app.add_option("CLUSTER", name, "a shipped cluster (attnsim topology list) or a file")
      ->required();
}

void add_cluster(CLI::App& app, ask::question& q) {
  add_cluster_name(app, q.cluster);
  add_fields(app, q, ask::field_group::cluster);
}

void add_fields(CLI::App& app, ask::question& q, ask::field_group group,
                const std::vector<std::string_view>& left_out) {
  for (const auto& f : ask::fields()) {
    if (f.group == group && std::find(left_out.begin(), left_out.end(), f.name) == left_out.end())
      add_field(app, q, f);
  }
}

void add_prediction(CLI::App& app, ask::question& q) {
  add_cluster(app, q);
  add_fields(app, q, ask::field_group::attention);
  app.get_option("--seq")->required();
  add_fields(app, q, ask::field_group::strategy);
  add_fields(app, q, ask::field_group::reading);
}

void output_flags::add_to(CLI::App& app) {
  app.add_option("--format", format, "table, json or csv")->capture_default_str();
  add_quiet(app, quiet);
}

void add_quiet(CLI::App& app, bool& quiet) {
  app.add_flag("--quiet", quiet, quiet_means);
}

void add_quiet(CLI::App& app) {
  app.add_flag("--quiet", quiet_means);
}

named_file file_read_for(const std::string& flag, std::string_view key, const std::string& name) {
  for (const std::string profile : {"cluster", "device", "host", "framework"}) {
    if (key != profile) continue;
    try {
      return {flag, find_topology_file(profile + "s", name)};
    } catch (const std::invalid_argument&) {  // what reads it says so
    }
  }
  return {};
}

std::vector<named_file> files_of(const ask::question& q) {
  std::vector<named_file> files{file_read_for("CLUSTER", "cluster", q.cluster),
                                file_read_for("--device", "device", q.overrides.device),
                                file_read_for("--host", "host", q.overrides.host),
                                file_read_for("--framework", "framework", q.framework),
                                {"--schedule-file", q.schedule_file},
                                {"--model", q.model}};
  for (const auto& [key, value] : q.overrides.set)
    files.push_back(file_read_for("--set " + key, key, value));
  return files;
}

void add_report(CLI::App& app, std::string& file) {
  app.add_option("--report", file, "write charts and tables to this file, one HTML page");
}

}  // namespace attnsim::cli
