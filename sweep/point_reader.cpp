#include "sweep/point_reader.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "model/error.hpp"
#include "model/named.hpp"

namespace attnsim::sweep {
namespace {

constexpr std::string_view scope_key = "scope";

/// The question that has the cluster.
ask::question& base_of(ask::question& q) {
  return q;
}
ask::question& base_of(ask::step_question& q) {
  return q.base;
}

/// A framework may bring its host. A step has the cluster's fields and the framework from attention.
bool is_of_cluster(const std::string& key) {
  const auto* f = ask::find_field(key);
  return key == "framework" || (f != nullptr ? f->group == ask::field_group::cluster
                                             : ask::find_step_field(key) == nullptr);
}

/// Of the cluster, but of its links alone, or of how many nodes there are.
bool leaves_device(const std::string& key) {
  const auto begins = [&](const char* part) { return key.starts_with(part); };
  return key == "nodes" || begins("nics.") || begins("node.") || begins("fabric.");
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

template <typename Question>
void check_points(const spec& all) {
  point_reader<Question> reader(all);
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

}  // namespace

scope scope_of(const spec& all) {
  const setting* given = nullptr;
  for (const auto& s : all.settings) {
    if (s.key != scope_key) continue;
    if (s.value != "attention" && s.value != "step")
      throw input_error(s.where, s.value, expected_one_of(s.value, {"attention", "step"}));
    if (given != nullptr)
      throw input_error(s.where, s.value, "expected one scope for all points of a sweep");
    given = &s;
  }
  return given != nullptr && given->value == "step" ? scope::step : scope::attention;
}

prediction answer_of(const ask::question& q, const cluster&, ask::known_parts& known) {
  return ask::predict(q, known.work());
}

ask::step_answer answer_of(const ask::step_question& q, const cluster& c, ask::known_parts& known) {
  return ask::answer(q, c, known);
}

template <typename Question>
struct point_reader<Question>::read_cluster {
  read_cluster(cluster c, known_schedules::device device, known_schedules& schedules)
      : is(std::move(c)), known(is, std::move(device), schedules) {}

  cluster is;
  ask::known_parts known;
};

template <typename Question>
Question point_reader<Question>::question_of(const point& p) {
  Question q;
  std::string of_cluster, of_device;
  for (const auto index : p) {
    const auto& s = spec_.settings[index];
    if (s.value.empty() || s.key == scope_key) continue;
    ask::set_key(q, s.key, s.value);
    if (!is_of_cluster(s.key)) continue;
    const auto text = s.key + "=" + s.value + "\n";
    of_cluster += text;
    if (!leaves_device(s.key)) of_device += text;
  }
  const auto& base = base_of(q);
  if (base.cluster.empty()) throw input_error(asked("cluster"), "is required");
  cluster_ = cluster_for(base, of_cluster, of_device);
  return q;
}

template <typename Question>
auto point_reader<Question>::cluster_for(const ask::question& q, const std::string& settings,
                                         const std::string& settings_of_device)
    -> const std::shared_ptr<read_cluster>& {
  const auto known = clusters_.find(settings);
  if (known != clusters_.end()) return known->second;
  constexpr std::size_t most_profiles = 64;
  auto c = ask::cluster_of(q);
  const auto devices = static_cast<std::size_t>(c.devices());
  if (devices_ + devices > most_devices_) {
    clusters_.clear();
    devices_ = 0;
  }
  devices_ += devices;
  if (profiles_.size() == most_profiles && !profiles_.contains(settings_of_device))
    profiles_.clear();
  auto& profile = profiles_[settings_of_device];
  if (!profile) profile = std::make_shared<const device_profile>(c.device);
  return clusters_
      .emplace(settings, std::make_shared<read_cluster>(std::move(c), profile, schedules_))
      .first->second;
}

template <typename Question>
auto point_reader<Question>::answer_to(const point& p) -> answer {
  try {
    const auto q = question_of(p);
    return answer_of(q, cluster_->is, cluster_->known);
  } catch (const input_error& e) {
    throw located(e, spec_, p);
  }
}

template <typename Question>
void point_reader<Question>::check(const point& p) {
  try {
    auto q = question_of(p);
    base_of(q).by = prediction_method::analytic;
    answer_of(q, cluster_->is, cluster_->known);
  } catch (const input_error& e) {
    throw located(e, spec_, p);
  }
}

template class point_reader<ask::question>;
template class point_reader<ask::step_question>;

void check(const spec& all) {
  if (scope_of(all) == scope::step) return check_points<ask::step_question>(all);
  check_points<ask::question>(all);
}

}  // namespace attnsim::sweep
