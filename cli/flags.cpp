#include "cli/flags.hpp"

#include <algorithm>
#include <vector>

namespace attnsim::cli {
namespace {

constexpr const char* quiet_means = "no progress and no notes on stderr";

void add_field(CLI::App& app, ask::question& q, const ask::field& f) {
  const std::string flag = "--" + std::string(f.name), means(f.means);
  switch (f.is) {
    case ask::field::form::value:
      app.add_option_function<std::string>(
             flag, [&q, &f](const std::string& text) { set(q, f, text); }, means)
          ->default_str(std::string(f.usual));
      break;
    case ask::field::form::on_off:
      app.add_flag_callback(
          flag, [&q, &f] { set(q, f, "true"); }, means);
      break;
    case ask::field::form::list:
      app.add_option_function<std::vector<std::string>>(
             flag,
             [&q, &f](const std::vector<std::string>& all) {
               for (const auto& text : all) set(q, f, text);
             },
             means)
          ->allow_extra_args(false);
  }
}

}  // namespace

void add_cluster(CLI::App& app, ask::question& q) {
  app.add_option("CLUSTER", q.cluster, "a shipped cluster (attnsim topology list) or a file")
      ->required();
  add_fields(app, q, ask::field_group::cluster);
}

void add_fields(CLI::App& app, ask::question& q, ask::field_group group,
                std::initializer_list<std::string_view> left_out) {
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

void add_report(CLI::App& app, std::string& file) {
  app.add_option("--report", file, "write charts and tables to this file, one HTML page");
}

}  // namespace attnsim::cli
