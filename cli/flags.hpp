// Flags of several commands. Those of a question are made from the table of its fields (ask/question.hpp).
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "ask/question.hpp"
#include "cli/write_file.hpp"
#include "model/error.hpp"

namespace attnsim::cli {

/// CLUSTER.
void add_cluster_name(CLI::App&, std::string& name);

/// The same, and a flag for each field of the group.
void add_cluster(CLI::App&, ask::question&);

template <typename Question>
void add_field(CLI::App& app, Question& q, const ask::field_of<Question>& f) {
  using form = typename ask::field_of<Question>::form;
  const std::string flag = "--" + std::string(f.name), means(f.means);
  switch (f.is) {
    case form::value:
      app.add_option_function<std::string>(
             flag, [&q, &f](const std::string& text) { set(q, f, text); }, means)
          ->default_str(std::string(f.usual));
      break;
    case form::on_off:
      app.add_flag_callback(
          flag, [&q, &f] { set(q, f, "true"); }, means);
      break;
    case form::list:
      app.add_option_function<std::vector<std::string>>(
             flag,
             [&q, &f](const std::vector<std::string>& all) {
               for (const auto& text : all) set(q, f, text);
             },
             means)
          ->allow_extra_args(false);
  }
}

/// A flag for each field of the group but those left out.
void add_fields(CLI::App&, ask::question&, ask::field_group,
                const std::vector<std::string_view>& left_out = {});

/// All that one prediction needs.
void add_prediction(CLI::App&, ask::question&);

/// What main prints of an error: about a field, its flag.
template <typename Error>
std::string worded(const Error& e) {
  return (e.field().empty() ? "" : "--") + std::string(e.what());
}

/// --format and --quiet.
struct output_flags {
  std::string format = "table";
  bool quiet = false;

  void add_to(CLI::App&);
};

/// --quiet: nothing on stderr but errors. Without a place for it: there never is anything else.
void add_quiet(CLI::App&, bool& quiet);
void add_quiet(CLI::App&);

/// The file that is read for the question's cluster, device or host of that name; none for other keys.
named_file file_read_for(const std::string& flag, std::string_view key, const std::string& name);

/// The files that a question is read from.
std::vector<named_file> files_of(const ask::question&);

/// --report FILE.html.
void add_report(CLI::App&, std::string& file);

/// Runs a parser that throws std::invalid_argument with what is expected; the message then names the flag and value.
template <typename Parser>
auto parse_flag(const std::string& flag, const std::string& text, Parser parser) {
  try {
    return parser(text);
  } catch (const std::invalid_argument& e) {
    throw input_error(flag, text, e.what());
  }
}

}  // namespace attnsim::cli
