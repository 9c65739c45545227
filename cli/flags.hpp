// Flags of several commands. Those of a question are made from the table of its fields (ask/question.hpp).
#pragma once

#include <CLI/CLI.hpp>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "ask/question.hpp"
#include "cli/write_file.hpp"
#include "model/error.hpp"

namespace attnsim::cli {

/// CLUSTER, and a flag for each field of the group.
void add_cluster(CLI::App&, ask::question&);

void add_field(CLI::App&, ask::question&, const ask::field&);

/// A flag for each field of the group but those left out.
void add_fields(CLI::App&, ask::question&, ask::field_group,
                std::initializer_list<std::string_view> left_out = {});

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
