#include "web/answers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ask/bases.hpp"
#include "ask/frameworks.hpp"
#include "ask/grid_map.hpp"
#include "ask/predicted_run.hpp"
#include "ask/question.hpp"
#include "ask/schedule_file.hpp"
#include "ask/search.hpp"
#include "ask/step.hpp"
#include "ask/what_if.hpp"
#include "formats/cluster_file.hpp"
#include "formats/drawing.hpp"
#include "formats/from_cluster.hpp"
#include "formats/warnings.hpp"
#include "model/error.hpp"
#include "model/printable.hpp"
#include "model/read_file.hpp"
#include "model/schedule/algorithms/schedules.hpp"
#include "model/spelling.hpp"
#include "model/topology_files.hpp"
#include "report/explanation.hpp"
#include "report/grid_map_views.hpp"
#include "report/pages.hpp"
#include "report/results.hpp"
#include "report/search_views.hpp"
#include "report/step_views.hpp"
#include "report/what_if_views.hpp"

namespace attnsim::web {
namespace {

using json = nlohmann::ordered_json;

std::string text_at(const json& request, const char* key, const std::string& otherwise = "") {
  return request.value(key, otherwise);
}

std::string written(const json& answer) {
  return answer.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::vector<std::string> names_at(const json& request, const char* key) {
  std::vector<std::string> names;
  std::istringstream list(text_at(request, key));
  for (std::string name; std::getline(list, name, ',');)
    names.emplace_back(find_algorithm(name).name);
  return names;
}

json map_at(const json& request, const char* key) {
  return request.value(key, json::object());
}

/// Into the page's own file system.
void write_files(const json& request) {
  const auto files = map_at(request, "files");
  for (const auto& [name, text] : files.items()) {
    if (name.empty() || name.find('/') != std::string::npos || name.front() == '.')
      throw input_error("file: '" + printable(name) + "': expected a name without folders");
    std::ofstream(name, std::ios::binary) << text.get<std::string>();
  }
}

template <typename Question, typename Find>
void read_fields(Question& q, const json& request, Find find) {
  const auto fields = map_at(request, "fields");
  for (const auto& [name, given] : fields.items()) {
    const auto* field = find(name);
    if (field == nullptr) throw input_error(location{name, ""}, "unknown field");
    for (const auto& one : given.is_array() ? given : json::array({given}))
      ask::set(q, *field, one.template get<std::string>());
  }
}

ask::question question_of(const json& request) {
  ask::question q;
  ask::set_key(q, "cluster", text_at(request, "cluster"));
  read_fields(q, request, ask::find_field);
  return q;
}

ask::step_question step_of(const json& request) {
  ask::step_question q;
  ask::set_key(q.base, "cluster", text_at(request, "cluster"));
  read_fields(q, request, ask::find_step_field);
  for (const auto* name : {"model", "seq"}) {
    if (ask::find_step_field(name)->write(q).empty())
      throw input_error(asked(name), "", "a step needs it");
  }
  return q;
}

json shown(const report::page& page) {
  auto data = page.data();
  return {{"result", data["result"]}, {"html", page.body()}, {"charts", data["charts"]}};
}

template <typename Fields>
json table_of(const Fields& fields, const std::vector<std::string_view>& left_out = {}) {
  static constexpr const char* groups[] = {"cluster", "attention", "strategy", "reading", "step"};
  static constexpr const char* forms[] = {"value", "switch", "list"};
  auto rows = json::array();
  for (const auto& f : fields) {
    if (std::find(left_out.begin(), left_out.end(), f.name) != left_out.end()) continue;
    rows.push_back({{"name", f.name},
                    {"group", groups[static_cast<int>(f.group)]},
                    {"means", f.means},
                    {"usual", f.usual},
                    {"form", forms[static_cast<int>(f.is)]},
                    {"choices", f.choices != nullptr ? json(f.choices()) : json::array()},
                    {"open", f.choices == nullptr || f.is_open}});
  }
  return rows;
}

json tables(const json&, const listener&) {
  auto importers = json::array(), schedules = json::array();
  for (const auto& i : formats::known_importers())
    importers.push_back(
        {{"name", i.name}, {"what", i.what}, {"assumes", i.assumes}, {"refuses", i.refuses}});
  for (const auto& a : algorithms())
    schedules.push_back({{"name", a.name}, {"summary", a.summary}, {"source", a.source}});
  return {{"fields", table_of(ask::fields())},
          {"step_fields", table_of(ask::step_fields())},
          {"search_fields", table_of(ask::fields(), fields_left_to_search())},
          {"clusters", shipped_clusters()},
          {"importers", importers},
          {"schedules", schedules}};
}

json predict(const json& request, const listener& told) {
  const auto q = question_of(request);
  const auto c = ask::cluster_of(q);
  const bool views = request.value("views", false);
  ask::predicted_run run(q, c, views ? ask::recording::slowest : ask::recording::totals,
                         [&](auto done, auto wanted) {
                           if (told.progress) told.progress(done, wanted);
                         });
  if (!views) return {{"result", report::to_json(run.prediction())}};
  auto all = shown(report::page_of(c, run));
  all["csv"] = report::to_csv(run.prediction());
  return all;
}

/// For every framework its settings, or why it can run none of the candidates.
json settings_for(const plan_result& plan) {
  auto all = json::array();
  for (const auto& f : frameworks()) {
    json one{{"framework", f.name}};
    try {
      one["text"] = report::to_text(settings_of_best(f, plan), f.name, plan);
    } catch (const infeasible& e) {
      one["refusal"] = e.what();
    }
    all.push_back(std::move(one));
  }
  return all;
}

/// The best of them.
std::vector<prediction> top_of(std::vector<prediction> ranked, const json& request) {
  const auto top = request.value("top", std::size_t{20});
  if (ranked.size() > top) ranked.resize(top);
  return ranked;
}

/// Tells a ranking when 1, 2, 4, 8, ... candidates are known.
plan_preview ranking_so_far(const cluster& c, const json& request, const listener& told) {
  if (!told.so_far || !request.value("views", false)) return {};
  return [&, known = std::vector<prediction>()](const prediction& p) mutable {
    known.push_back(p);
    if ((known.size() & (known.size() - 1)) != 0) return;
    const auto page = report::page_so_far(c, top_of(best_of_each(known), request));
    told.so_far(written({{"html", page.body()}, {"charts", page.data()["charts"]}}));
  };
}

json plan_all(const json& request, const listener& told) {
  const auto q = question_of(request);
  const auto c = ask::cluster_of(q);
  auto result = plan(c, ask::plan_of(q, ask::ranks_of(q, c), names_at(request, "schedules")),
                     told.progress, ranking_so_far(c, request, told));
  result.candidates = top_of(std::move(result.candidates), request);
  if (!request.value("views", false)) return {{"result", report::to_json(result)}};
  auto all = shown(report::page_of(c, result));
  all["csv"] = report::to_csv(result);
  all["settings"] = settings_for(result);
  all["counts"] = {{"considered", result.considered},
                   {"estimated", result.estimated},
                   {"simulated", result.simulated},
                   {"rejected", result.rejected.size()}};
  return all;
}

json what_if(const json& request, const listener&) {
  const auto q = question_of(request);
  const auto varied =
      ask::answer(q, ask::parse_what_if(text_at(request, "vary")), names_at(request, "schedules"));
  auto all = shown(report::page_of(varied));
  all["csv"] = report::to_csv(varied);
  return all;
}

json map_grids(const json& request, const listener& told) {
  const auto q = question_of(request);
  const auto map =
      ask::map_grids(q, ask::cluster_of(q), names_at(request, "schedules"), told.progress);
  if (map.fastest() == nullptr) throw infeasible("no grid runs that fits in memory");
  return shown(report::page_of(map));
}

json step(const json& request, const listener&) {
  const auto q = step_of(request);
  const auto c = ask::cluster_of(q.base);
  const auto a = ask::answer(q, c);
  if (!request.value("views", false)) return {{"result", report::to_json(a)}};
  auto all = shown(report::page_of(c, a));
  all["csv"] = report::to_csv(a);
  return all;
}

json search(const json& request, const listener& told) {
  const auto q = question_of(request);
  const auto c = ask::cluster_of(q);
  const auto r = search_schedules(c,
                                  {.planned = ask::plan_of(q, ask::ranks_of(q, c), {}),
                                   .evaluations = request.value("evaluations", std::size_t{2000})},
                                  told.progress);
  if (!request.value("views", false)) return {{"result", report::to_json(r)}};
  auto all = shown(report::page_of(c, r));
  all["csv"] = report::to_csv(r);
  all["schedule"] = ask::schedule_file_of(
      r.found.chosen, {.asked = fmt::format("{} {}", q.cluster, ask::written(q, {})),
                       .seed = static_cast<std::int64_t>(r.seed),
                       .evaluated = static_cast<std::int64_t>(r.evaluated),
                       .time = r.found.time,
                       .limit = r.found.limit.time});
  return all;
}

json show_cluster(const json& request, const listener&) {
  const auto q = question_of(request);
  const auto c = ask::cluster_of(q);
  json all{{"name", c.name},
           {"devices", c.devices()},
           {"device", c.device.name},
           {"nodes", c.nodes},
           {"bisection", to_string(formats::bisection(c))},
           {"bases", json::array()},
           {"yaml", read_file(find_topology_file("clusters", q.cluster))},
           {"warnings", formats::warnings_of(formats::from_cluster(c))}};
  for (const auto& one : ask::bases_of(c))
    all["bases"].push_back({{"figures", one.figures}, {"basis", one.basis}});
  try {
    all["drawing"] = formats::draw_svg(c);
  } catch (const input_error& e) {
    all["drawing_refused"] = e.what();
  }
  return all;
}

formats::settings settings_of(const json& request) {
  formats::settings given{.device = text_at(request, "device")};
  const auto rate = text_at(request, "nic-bandwidth");
  if (rate.empty()) return given;
  try {
    given.nic_rate = parse<bandwidth>(rate);
    if (given.nic_rate <= bandwidth{}) throw std::invalid_argument("expected more than zero");
  } catch (const std::invalid_argument& e) {
    throw input_error(asked("nic-bandwidth"), rate, e.what());
  }
  return given;
}

json import_files(const json& request, const listener&) {
  const auto given = settings_of(request);
  const auto files = map_at(request, "files");
  std::vector<formats::topology> read;
  for (const auto& [name, text] : files.items())
    read.push_back(
        formats::read_topology(formats::read_source(name), given, text_at(request, "as")));
  if (read.empty()) throw input_error("files: expected at least one");
  const auto nodes = text_at(request, "nodes");
  ask::question counted;
  if (!nodes.empty()) ask::set(counted, "nodes", nodes);
  const auto file = formats::write_cluster_file(formats::combine(std::move(read), given),
                                                {.name = text_at(request, "name", "imported"),
                                                 .fabric = text_at(request, "fabric"),
                                                 .nodes = counted.overrides.nodes});
  return {{"yaml", file.text}, {"warnings", file.warnings}};
}

struct kind {
  std::string_view name;
  json (*answer)(const json& request, const listener&);
};
constexpr kind kinds[] = {
    {"tables", tables},   {"predict", predict},      {"plan", plan_all},
    {"what-if", what_if}, {"grids", map_grids},      {"step", step},
    {"search", search},   {"cluster", show_cluster}, {"import", import_files}};

json answer_to(const json& request, const listener& told) {
  const auto asked_for = text_at(request, "ask");
  for (const auto& k : kinds) {
    if (k.name != asked_for) continue;
    write_files(request);
    return k.answer(request, told);
  }
  throw input_error(asked("ask"), asked_for, expected_one_of(asked_for, names_in(kinds)));
}

json error(int exit, const std::string& field, const std::string& message) {
  return {{"error", {{"exit", exit}, {"field", field}, {"message", printable(message)}}}};
}

json answer_or_error(const std::string& request, const listener& told) {
  try {
    return answer_to(json::parse(request), told);
  } catch (const input_error& e) {
    return error(2, e.field(), e.what());
  } catch (const infeasible& e) {
    return error(3, e.field(), e.what());
  } catch (const std::exception& e) {
    return error(1, "", e.what());
  }
}

}  // namespace

std::string answer(const std::string& request, const listener& told) {
  return written(answer_or_error(request, told));
}

}  // namespace attnsim::web
