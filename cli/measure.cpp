#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <sstream>

#include "calibrate/measurement_plan.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/numbers.hpp"
#include "cli/progress.hpp"
#include "cli/write_file.hpp"
#include "kernels/backends.hpp"
#include "model/error.hpp"
#include "validate/measure.hpp"
#include "validate/start.hpp"
#include "validate/transports/inprocess.hpp"
#include "validate/transports/nccl.hpp"

namespace attnsim::cli {
namespace {

struct measure_flags {
  std::string out, held_out, points, kernels,
      kinds = "kernel,memory,transfer,overlap,matmul,elementwise,sequence", ranks = "1",
      rounds = "7", seconds, largest = "1024", time_out = "60";
  bool quick = false, full = false, restart = false, quiet = false;
};

volatile std::sig_atomic_t interrupted = 0;

void end_on_signals() {
  for (const int number : {SIGINT, SIGTERM}) std::signal(number, [](int) { interrupted = 1; });
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> list;
  std::istringstream items(text);
  for (std::string item; std::getline(items, item, ',');) {
    if (item != "none") list.push_back(item);
  }
  return list;
}

/// A file to be written: where its points lie among all, with the samples that it has already.
struct measured_file {
  std::string flag, path;
  std::size_t first = 0, last = 0;
};

/// Whether a launcher (torchrun, srun, mpirun) started this process.
bool launched() {
  const auto set = [](const char* name) { return std::getenv(name) != nullptr; };
  return set("RANK") || set("OMPI_COMM_WORLD_RANK") || set("SLURM_PROCID");
}

using chosen_backends = std::vector<kernels::backend_description>;

/// Those whose devices are here, without the host where there are others.
chosen_backends backends_here() {
  chosen_backends devices, hosts;
  for (const auto& b : kernels::backends()) {
    if (b.present()) (b.on_host ? hosts : devices).push_back(b);
  }
  return devices.empty() ? hosts : devices;
}

chosen_backends chosen(const measure_flags& flags) {
  if (flags.kernels.empty()) return backends_here();
  chosen_backends list;
  for (const auto& name : split(flags.kernels))
    list.push_back(kernels::find_backend(name, asked("kernels")));
  return list;
}

class measuring {
 public:
  /// `transfers`: whose device transfers run on.
  measuring(const measure_flags& flags, chosen_backends kernels,
            kernels::backend_description transfers)
      : flags_(flags),
        kernels_(std::move(kernels)),
        transfers_(std::move(transfers)),
        started_(validate::steady_seconds()) {
    if (!flags.seconds.empty()) {
      budget_ = static_cast<double>(parse_count("--seconds", flags.seconds));
    } else if (flags.quick) {
      budget_ = 60;
    }
  }

  void run(validate::transport& t) {
    add("--out", flags_.out, point_set::fit, t.ranks());
    if (!flags_.held_out.empty())
      add("--held-out", flags_.held_out, point_set::held_out, t.ranks());
    const auto device = [&](const std::string& profile_kernel) {
      for (const auto& b : kernels_) {
        if (b.profile_kernel == profile_kernel)
          return kernels::make_device(
              b.name, {.local_rank = t.local_rank(), .local_ranks = t.local_ranks()});
      }
      if (profile_kernel != transfers_.profile_kernel)
        throw input_error("kernel", profile_kernel, "expected one that a back end here has");
      return kernels::make_device(transfers_.name,
                                  {.local_rank = t.local_rank(), .local_ranks = t.local_ranks()});
    };
    const bool complete = validate::measure(
        {.points = points_,
         .rounds = static_cast<std::size_t>(parse_count("--rounds", flags_.rounds)),
         .device = device,
         .transfer_device = transfers_.profile_kernel,
         .stops = [this] { return interrupted || (budget_ > 0 && passed() > budget_); },
         .report = [this](const auto& progress) { report(progress); },
         .leaves_out =
             [](const auto& point, const auto& why) {
               fmt::print(stderr, "left out: {}: {}\n", describe(point), why);
             }},
        t);
    if (t.rank() != 0) return;
    write();
    bar_.end();
    if (!flags_.quiet) {
      fmt::print(stderr, "{} in {:.0f} s; {}\n", complete ? "complete" : "stopped", passed(),
                 complete ? "next: attnsim calibrate" : "the same command goes on from here");
    }
  }

 private:
  double passed() const { return validate::steady_seconds() - started_; }

  void add(const char* flag, const std::string& path, point_set set, int ranks) {
    measurements old;
    if (!flags_.restart && std::filesystem::exists(path)) old = read_measurements(path);
    measured_file file{flag, path, points_.size()};
    for (auto& point : flags_.points.empty() ? planned(set, ranks) : given(ranks)) {
      const auto known = std::find_if(old.points.begin(), old.points.end(),
                                      [&](const auto& m) { return m.what == point; });
      points_.push_back(known == old.points.end() ? measurement{.what = std::move(point)} : *known);
    }
    file.last = points_.size();
    files_.push_back(file);
  }

  std::vector<measured_point> planned(point_set set, int ranks) const {
    std::vector<point_kind> kinds;
    for (const auto& kind : split(flags_.kinds))
      kinds.push_back(parse_flag("--kinds", kind, parse_point_kind));
    std::vector<kernel_to_measure> kernels;
    for (const auto& b : kernels_)
      kernels.push_back({b.profile_kernel, b.on_host, b.prepares_shapes});
    return measurement_plan({.effort = flags_.quick ? effort_kind::quick : effort_kind::full,
                             .set = set,
                             .kinds = kinds,
                             .kernels = kernels,
                             .ranks = ranks,
                             .largest_transfer = parse_count("--largest", flags_.largest) << 20});
  }

  std::vector<measured_point> given(int ranks) const {
    std::vector<measured_point> list;
    for (auto& m : read_measurements(flags_.points).points) {
      if (const int wanted = ranks_of(m.what); wanted > ranks) {
        throw input_error(flags_.points + ": " + describe(m.what), fmt::format("{} ranks", ranks),
                          fmt::format("expected {}", wanted));
      }
      list.push_back(std::move(m.what));
    }
    return list;
  }

  void report(const validate::measure_progress& p) {
    constexpr double often = 5;
    if (passed() - written_ > often) write();
    bar_.show(p.samples, p.wanted);
  }

  void write() {
    written_ = passed();
    if (environment_.empty()) environment_ = validate::describe_machine();
    for (const auto& f : files_) {
      measurements all{.environment = environment_};
      std::copy_if(points_.begin() + static_cast<std::ptrdiff_t>(f.first),
                   points_.begin() + static_cast<std::ptrdiff_t>(f.last),
                   std::back_inserter(all.points), [](const auto& m) { return m.rounds() > 0; });
      write_file(f.flag, f.path, to_json(all));
    }
  }

  const measure_flags& flags_;
  chosen_backends kernels_;
  kernels::backend_description transfers_;
  double started_, budget_ = 0, written_ = 0;
  progress bar_{"samples", flags_.quiet};
  std::vector<measured_file> files_;
  std::vector<measurement> points_;
  std::map<std::string, std::string> environment_;
};

void run(const measure_flags& flags) {
  if (flags.quick && flags.full) throw input_error("--quick: expected without --full");
  if (!flags.points.empty() && !flags.held_out.empty())
    throw input_error("--points: expected without --held-out");
  check_files({{"--out", flags.out}, {"--held-out", flags.held_out}});
  const auto kernels = chosen(flags);
  const auto transfers = kernels.empty() ? backends_here().front() : kernels.front();
  const std::chrono::duration<double> time_out(
      static_cast<double>(parse_count("--time-out", flags.time_out)));
  end_on_signals();
  const auto measure = [&](validate::transport& t) { measuring(flags, kernels, transfers).run(t); };
  if (transfers.on_host || !launched()) {
    const int ranks = transfers.on_host ? static_cast<int>(parse_count("--ranks", flags.ranks)) : 1;
    return validate::run_in_process(ranks, time_out, measure);
  }
  measure(*validate::join_nccl({.time_out = time_out, .blocking = true}, validate::find_place()));
}

}  // namespace

void add_measure(CLI::App& app) {
  auto flags = std::make_shared<measure_flags>();
  auto* command = app.add_subcommand(
      "measure", "time kernels, transfers and both at once on this machine, for attnsim calibrate");
  command
      ->add_option("--out", flags->out,
                   "write the measurements to this JSON file; goes on with one that is there")
      ->required();
  command->add_option("--held-out", flags->held_out,
                      "also measure other shapes and sizes, to check a profile, into this file");
  command->add_option("--points", flags->points,
                      "time the points of this measurements file (its samples are not read), in "
                      "place of a plan's");
  command->add_option("--kernels", flags->kernels,
                      "kernel back ends (an unknown name lists them), or none; default: those "
                      "whose devices are here");
  command->add_option("--kinds", flags->kinds, "what to time")->capture_default_str();
  command
      ->add_option(
          "--ranks", flags->ranks,
          "on the host, as threads; GPUs: one a process, started by torchrun, srun or mpirun")
      ->capture_default_str();
  command->add_flag("--quick", flags->quick, "fewer points, at most a minute");
  command->add_flag("--full", flags->full, "all points; the default");
  command->add_option("--rounds", flags->rounds, "samples of each point")->capture_default_str();
  command->add_option("--seconds", flags->seconds, "end after so long with what there is");
  command->add_option("--largest", flags->largest, "MiB of the largest slot of a transfer")
      ->capture_default_str();
  command
      ->add_option("--time-out", flags->time_out,
                   "seconds that an operation may wait for its peers")
      ->capture_default_str();
  command->add_flag("--restart", flags->restart, "begin anew where the file is there already");
  command->add_flag("--quiet", flags->quiet, "no progress");
  command->footer(
      "Examples:\n"
      "  attnsim measure --quick --out gpu.json                      one GPU: kernels\n"
      "  torchrun --no-python --nproc-per-node 8 attnsim measure --out node.json --held-out "
      "check.json");
  command->callback([flags] { run(*flags); });
}

}  // namespace attnsim::cli
