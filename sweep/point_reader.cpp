#include "sweep/point_reader.hpp"

#include <algorithm>
#include <vector>

#include "model/error.hpp"

namespace attnsim::sweep {
namespace {

/// A framework may bring its host.
bool is_of_cluster(const std::string& key) {
  const auto* f = ask::find_field(key);
  return f == nullptr || f->group == ask::field_group::cluster || key == "framework";
}

/// With the place in the specification instead of the field.
input_error located(const input_error& e, const spec& from, const point& p) {
  const std::string message = e.what();
  for (const auto index : p) {
    const auto& s = from.settings[index];
    for (const auto& beginning : {s.key + ":", "set: " + s.key + ":"}) {
      if (message.starts_with(beginning))
        return input_error(s.where + ":" + message.substr(beginning.size()));
    }
  }
  return input_error(from.file + ": " + message);
}

}  // namespace

ask::question point_reader::question_of(const point& p) {
  ask::question q;
  std::string of_cluster;
  for (const auto index : p) {
    const auto& s = spec_.settings[index];
    if (s.value.empty()) continue;
    ask::set_key(q, s.key, s.value);
    if (is_of_cluster(s.key)) of_cluster += s.key + "=" + s.value + "\n";
  }
  if (q.cluster.empty()) throw input_error(asked("cluster"), "is required");
  if (!cluster_ || of_cluster != cluster_from_) {
    cluster_ = ask::cluster_of(q);
    cluster_from_ = of_cluster;
  }
  return q;
}

prediction point_reader::predict(const point& p) {
  try {
    const auto q = question_of(p);
    return ask::predict(q, *cluster_);
  } catch (const input_error& e) {
    throw located(e, spec_, p);
  }
}

void point_reader::check(const point& p) {
  try {
    auto q = question_of(p);
    q.by = prediction_method::analytic;
    ask::predict(q, *cluster_);
  } catch (const input_error& e) {
    throw located(e, spec_, p);
  }
}

void check(const spec& all) {
  point_reader reader(all);
  std::vector<bool> good(all.settings.size());
  std::vector<std::string> error(all.settings.size());
  for (const auto& p : all.points) {
    if (std::all_of(p.begin(), p.end(), [&](auto s) { return good[s]; })) continue;
    std::string failure;
    try {
      reader.check(p);
    } catch (const infeasible&) {
    } catch (const input_error& e) {
      failure = e.what();
    }
    for (const auto s : p) {
      good[s] = good[s] || failure.empty();
      if (error[s].empty()) error[s] = failure;
    }
  }
  for (std::size_t s = 0; s < good.size(); ++s) {
    if (!good[s] && !error[s].empty()) throw input_error(error[s]);
  }
}

}  // namespace attnsim::sweep
