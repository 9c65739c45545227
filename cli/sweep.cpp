#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "ask/step_figures.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/numbers.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/write_file.hpp"
#include "model/error.hpp"
#include "model/read_file.hpp"
#include "report/figure_views.hpp"
#include "sweep/point_reader.hpp"
#include "sweep/process_group.hpp"
#include "sweep/row_file.hpp"
#include "sweep/shared_rows.hpp"
#include "sweep/spec.hpp"

namespace attnsim::cli {
namespace {

using sweep::point;

struct sweep_flags {
  std::string spec, out, jobs;
  bool resume = false, share = false, quiet = false;
};

/// Rows: the point's values, the answer's figures but for those that are keys, why there is none or it is infeasible.
template <typename Question>
class table {
 public:
  using reader = sweep::point_reader<Question>;

  explicit table(const sweep::spec& spec) : spec_(spec) {
    for (const auto& [name, value] : report::columns_of_figures(typename reader::answer{})) {
      const bool is_key = std::find(spec.keys.begin(), spec.keys.end(), name) != spec.keys.end();
      written_.push_back(!is_key && name != "schema");
      if (written_.back()) columns_.push_back(name);
    }
  }

  std::string header() const {
    auto names = spec_.keys;
    names.insert(names.end(), columns_.begin(), columns_.end());
    names.emplace_back("reason");
    return csv_line(names);
  }

  /// How the row of a point begins.
  std::string beginning(const point& p) const { return csv_line(spec_.values_of(p)) + ","; }

  std::string row(const point& p, reader& points) const {
    try {
      return beginning(p) + csv_line(fields(points.answer_to(p)));
    } catch (const infeasible& e) {
      return beginning(p) + csv_line(without_figures(e.what()));
    } catch (const input_error& e) {
      return beginning(p) + csv_line(without_figures(e.what()));
    }
  }

 private:
  std::vector<std::string> fields(const typename reader::answer& answer) const {
    std::vector<std::string> list;
    auto all = report::columns_of_figures(answer);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (written_[i]) list.push_back(std::move(all[i].second));
    }
    list.push_back(answer.lacks);
    return list;
  }
  std::vector<std::string> without_figures(const std::string& reason) const {
    std::vector<std::string> list;
    for (const auto& name : columns_) list.emplace_back(name == "feasible" ? "false" : "");
    list.push_back(reason);
    return list;
  }

  const sweep::spec& spec_;
  std::vector<std::string> columns_;
  std::vector<bool> written_;  ///< by column of all figures
};

/// What one thread does.
template <typename Question>
sweep::worker make_worker(const sweep::spec& spec, const table<Question>& rows) {
  return [&spec, &rows, points = std::make_shared<sweep::point_reader<Question>>(spec)](
             std::size_t index) { return rows.row(spec.points[index], *points); };
}

void check_out(const std::string& path) {
  if (path.ends_with(".csv")) return;
  throw input_error("--out", path,
                    path.ends_with(".parquet")
                        ? "expected a .csv file; Parquet is not supported, as "
                          "Debian 12 has no Apache Arrow"
                        : "expected a .csv file");
}

std::vector<named_file> input_files(const sweep::spec& spec) {
  std::vector<named_file> files{{"SPEC", spec.file}};
  for (const auto& s : spec.settings) files.push_back(file_read_for(s.where, s.key, s.value));
  return files;
}

/// `processes` that MPI started, and that work as one.
int threads_of(const sweep_flags& flags, int processes) {
  if (flags.jobs.empty()) return processes > 1 ? 1 : sweep::available_cores();
  const auto jobs = parse_count("--jobs", flags.jobs);
  if (processes > 1)
    throw input_error("--jobs", flags.jobs, "expected without mpirun, which starts a job a core");
  return static_cast<int>(std::min<std::int64_t>(jobs, 1024));
}

template <typename Question>
void run_points(const sweep_flags& flags, int threads, const std::string& text,
                const sweep::spec& spec, sweep::process_group& all) {
  const table<Question> rows(spec);
  if (!all.first()) return all.help(make_worker(spec, rows));
  const auto total = spec.points.size();
  sweep::row_file file(flags.out, rows.header(), total, flags.resume,
                       [&](std::size_t i) { return rows.beginning(spec.points[i]); });
  auto missing = file.missing();
  auto done = total - missing.size();
  progress bar("points", flags.quiet);
  bar.show(done, total);
  all.send(text);
  all.run(
      std::move(missing), threads, [&] { return make_worker(spec, rows); },
      [&](std::size_t index, const std::string& row) {
        file.add(index, row);
        bar.show(++done, total);
      });
  write_file("--out", flags.out, file.text());
  file.close();
}

template <typename Question>
void share_points(const sweep_flags& flags, const std::string& text, const sweep::spec& spec) {
  const table<Question> rows(spec);
  const auto total = spec.points.size();
  sweep::shared_rows file(flags.out, text, rows.header(), total,
                          [&](std::size_t i) { return rows.beginning(spec.points[i]); });
  progress bar("points", flags.quiet);
  file.run(
      threads_of(flags, 1), [&] { return make_worker(spec, rows); },
      [&](std::size_t done) { bar.show(done, total); });
}

/// Beside others that run the same command, of which nothing is known.
void run_shared(const sweep_flags& flags) {
  check_out(flags.out);
  const auto text = read_file(flags.spec);
  const auto spec = sweep::parse_spec(text, flags.spec);
  check_files({{"--out", flags.out}}, input_files(spec));
  sweep::check(spec);
  if (sweep::scope_of(spec) == sweep::scope::step)
    share_points<ask::step_question>(flags, text, spec);
  else
    share_points<ask::question>(flags, text, spec);
}

void run(const sweep_flags& flags) {
  if (flags.share) return run_shared(flags);
  sweep::process_group all;
  int threads = 1;
  if (all.first()) {
    check_out(flags.out);
    threads = threads_of(flags, all.processes());
  }
  const auto text = all.first() ? read_file(flags.spec) : all.receive();
  if (!all.first() && text.empty()) return;  // the first process says why
  const auto spec = sweep::parse_spec(text, flags.spec);
  if (all.first()) check_files({{"--out", flags.out}}, input_files(spec));
  sweep::check(spec);
  if (sweep::scope_of(spec) == sweep::scope::step)
    run_points<ask::step_question>(flags, threads, text, spec, all);
  else
    run_points<ask::question>(flags, threads, text, spec, all);
}

}  // namespace

void add_sweep(CLI::App& app) {
  auto flags = std::make_shared<sweep_flags>();
  auto* command =
      app.add_subcommand("sweep", "predictions of many points, on all cores or machines");
  command
      ->add_option("SPEC", flags->spec, "YAML file: fields of the question, each with its values")
      ->required();
  command->add_option("--out", flags->out, "write the rows to this CSV file")->required();
  command->add_flag("--resume", flags->resume, "go on where a sweep was stopped");
  command->add_flag(
      "--share", flags->share,
      "work with all processes that run this command, on machines that share FILE's folder");
  command->add_option("--jobs", flags->jobs, "threads (default: one a core)");
  command->add_flag("--quiet", flags->quiet, "no progress on stderr");
  command->footer(
      "SPEC has a key for each flag of attnsim predict, without the dashes, or key of the cluster\n"
      "file, by its path; each has one value or a list, in which '' stands for not given. With\n"
      "scope: step, those of attnsim step. The points are all combinations:\n"
      "  cluster: nd-h100-v5\n"
      "  model: llama3-8b\n"
      "  nodes: [1, 2, 4, 8]\n"
      "  seq: [128K, 1M]\n"
      "  nics.bandwidth: [200 Gb/s, 400 Gb/s]\n"
      "  points:                     # keys that change together\n"
      "    - {schedule: ring}\n"
      "    - {schedule: attention2d, placement: [node-major, tile-in-node]}\n"
      "A point that is infeasible has a row that says why. Until all are done, the rows are in\n"
      "FILE.csv.rows. With --share, start the command as often as you like, as tasks of a Slurm "
      "array;\n"
      "they may be killed and started again. Until all points are done, rows are in "
      "FILE.csv.parts.\n"
      "Examples:\n"
      "  attnsim sweep bandwidth.yaml --out bandwidth.csv\n"
      "  mpirun -np 64 attnsim sweep bandwidth.yaml --out bandwidth.csv --resume\n"
      "  sbatch --array=1-100 --wrap 'attnsim sweep bandwidth.yaml --out bandwidth.csv --share'");
  command->callback([flags] { run(*flags); });
}

}  // namespace attnsim::cli
