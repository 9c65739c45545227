#include "validate/layer/validate_layer.hpp"

#include <fmt/format.h>

#include "cli/exit.hpp"
#include "cli/validate_flags.hpp"
#include "kernels/backends.hpp"
#include "model/error.hpp"

namespace attnsim::cli {
namespace {

using nlohmann::ordered_json;
using validate::layer_validation;
using validate::part_time;

layer_validation validated(const validate_flags& flags, const cluster& c,
                           validate::transport* through) {
  auto question =
      layer_question(flags.run, kernels::find_backend(flags.run.kernel).profile_kernel, c);
  question.base.ranks = ask::ranks_of(flags.cluster, c);
  const validate::layer_request request{.on = c,
                                        .question = question,
                                        .kernel = flags.run.kernel,
                                        .transport = flags.transport,
                                        .checks = !flags.times_only,
                                        .repeats = repeats_of(flags),
                                        .time_out = time_out_of(flags)};
  return through ? validate::validate_layer(request, *through) : validate::validate_layer(request);
}

ordered_json numerics_of(const layer_validation& v) {
  if (!v.computed) return nullptr;
  ordered_json errors;
  for (const auto& e : v.numbers.errors) errors[std::string(e.what)] = e.relative;
  return {{"relative_errors", errors},
          {"tolerance", v.numbers.tolerance},
          {"passed", v.numbers.passed}};
}

ordered_json to_json(const layer_validation& v) {
  ordered_json all{{"schema", layer_schema},
                   {"numerics", numerics_of(v)},
                   {"predicted_s", v.total.predicted.value()},
                   {"measured_s", v.total.measured.value()},
                   {"error", v.total.error()},
                   {"passes", ordered_json::array()}};
  for (const auto& p : v.passes) {
    auto pass = cli::to_json(p.total);
    pass["name"] = name_of(p.pass);
    for (const auto& part : p.parts) pass["parts"].push_back(cli::to_json(part));
    for (const auto& op : p.operations)
      pass["operations"].push_back({{"name", op.name}, {"measured_s", op.measured.value()}});
    all["passes"].push_back(std::move(pass));
  }
  return all;
}

std::string to_table(const layer_validation& v) {
  std::string text;
  if (v.computed)
    text = fmt::format("numbers: relative error {:.2e}, tolerance {:.0e}: {}\n",
                       v.numbers.relative_error(), v.numbers.tolerance,
                       v.numbers.passed ? "passed" : "FAILED");
  text_table table({"part", "predicted", "measured", "error"});
  const auto add = [&](const std::string& name, const part_time& part) {
    table.add({name, to_string(part.predicted), to_string(part.measured),
               fmt::format("{:+.1f} %", 100 * part.error())});
  };
  for (const auto& p : v.passes) {
    for (const auto& part : p.parts) add(fmt::format("{} {}", name_of(p.pass), part.name), part);
    add(fmt::format("{} total", name_of(p.pass)), p.total);
  }
  add("total", v.total);
  return text + table.str();
}

void print_csv(const layer_validation& v) {
  fmt::print("part,predicted_s,measured_s,error\n");
  const auto line = [](const std::string& name, const part_time& part) {
    fmt::print("{}\n",
               csv_line(name, fmt::format("{}", part.predicted.value()),
                        fmt::format("{}", part.measured.value()), fmt::format("{}", part.error())));
  };
  for (const auto& p : v.passes) {
    for (const auto& part : p.parts) line(fmt::format("{} {}", name_of(p.pass), part.name), part);
    line(fmt::format("{} total", name_of(p.pass)), p.total);
  }
  line("total", v.total);
}

}  // namespace

void refuse_for_layer(const validate_flags& flags) {
  const auto refuse = [](const char* flag, const std::string& text) {
    if (!text.empty()) throw input_error(flag, text, "expected without --scope layer");
  };
  refuse("--emulate", flags.emulate == "none" ? "" : flags.emulate);
  refuse("--timelines", flags.timelines);
  refuse("--trace", flags.trace);
  refuse("--report", flags.report);
  refuse("--cuda-graph", flags.run.graph ? "true" : "");
}

void run_layer(const validate_flags& flags, const cluster& c, output_format format) {
  const auto v = validated(flags, c, nullptr);
  if (v.rank == 0) {
    switch (format) {
      case output_format::json:
        print_json(to_json(v));
        break;
      case output_format::table:
        print_table(to_table(v));
        break;
      case output_format::csv:
        print_csv(v);
    }
  }
  if (!v.passed())
    throw failed_validation(
        "the numbers differ from a single device's layer by more than the tolerance");
}

bool run_layer_case(const validate_flags& flags, const cluster& c, validate::transport& through,
                    ordered_json& result) {
  const auto v = validated(flags, c, &through);
  result["kernel"] = kernels::find_backend(flags.run.kernel).profile_kernel;
  result["start"] = name_of(run_start::in_sequence);
  result.update(to_json(v));
  for (const auto& p : v.passes) {
    for (const auto duration : p.durations)
      result["durations_s"][std::string(name_of(p.pass))].push_back(duration.value());
  }
  return v.passed();
}

}  // namespace attnsim::cli
