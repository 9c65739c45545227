// What the page shows of answers: reports are the same as those of --report, markup and charts (report.js); beside them exports,
// settings for frameworks, two answers side by side.
import {element, save, table} from "./elements.js";
import {command_of, python_of} from "./question.js";
import {show_trust} from "./trust.js";

/// An answer's html is report/'s own, its texts escaped there.
export function show_report(root, answer) {
  root.innerHTML = answer.html;
  draw_charts(root, answer.charts);
}

const copied = text => element("button", {type: "button", onclick: async event => {
  await navigator.clipboard.writeText(text);
  event.target.textContent = "Copied";
}}, "Copy");

const shown_text = (title, text) => element("section", {}, element("h2", {}, title), element("pre", {tabindex: 0}, text), copied(text));

const drawn_properties = ["fill", "fill-opacity", "stroke", "stroke-width", "font-size", "font-family", "font-weight"];

/// A chart as a file of its own: what the page's styles give it stands in it.
function svg_of(chart) {
  const copy = chart.cloneNode(true);
  const originals = [chart, ...chart.querySelectorAll("*")], copies = [copy, ...copy.querySelectorAll("*")];
  originals.forEach((original, i) => {
    const style = getComputedStyle(original);
    for (const name of drawn_properties) copies[i].style.setProperty(name, style.getPropertyValue(name));
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return new XMLSerializer().serializeToString(copy);
}

const file_name = title => `${title.toLowerCase().replace(/\W+/g, "-")}.svg`;

function exports_of(question, answer, report) {
  const button = (name, act) => element("button", {type: "button", onclick: act}, name);
  const charts = () => {
    for (const section of report.querySelectorAll("section")) {
      const chart = section.querySelector("svg");
      if (chart) save(file_name(section.querySelector("h2").textContent), svg_of(chart), "image/svg+xml");
    }
  };
  return element("div", {class: "exports"},
    button("Save JSON", () => save(`${question.ask}.json`, `${JSON.stringify(answer.result, null, 2)}\n`, "application/json")),
    answer.schedule ? button("Save schedule", () => save("found.yaml", answer.schedule, "application/yaml")) : null,
    answer.csv ? button("Save CSV", () => save(`${question.ask}.csv`, answer.csv, "text/csv")) : null,
    button("Save charts as SVG", charts));
}

function settings_view(settings) {
  const text = element("pre", {tabindex: 0, id: "settings-text"});
  const can = settings.filter(s => s.text), cannot = settings.filter(s => !s.text);
  const choose = element("select", {id: "framework", onchange: () => { text.textContent = can[choose.selectedIndex].text; }},
    ...can.map(s => element("option", {}, s.framework)));
  if (can.length) text.textContent = can[0].text;
  const copy = element("button", {type: "button", onclick: () => navigator.clipboard.writeText(text.textContent)}, "Copy");
  const shown = [element("div", {class: "field"}, element("label", {for: "framework"}, "framework"), choose), text, copy];
  const refusals = element("details", {}, element("summary", {}, `${cannot.length} that cannot run any of these`),
    table([["framework", "why"], ...cannot.map(s => [s.framework, s.refusal])]));
  return element("section", {}, element("h2", {}, "Settings for a framework"),
    ...(can.length ? shown : []), cannot.length ? refusals : null);
}

/// `tables` has how fields are written.
export function show_more(root, question, answer, tables, report) {
  const command = command_of(question, tables.switches), python = python_of(question, tables.groups);
  root.replaceChildren(...[
    exports_of(question, answer, report),
    answer.settings ? settings_view(answer.settings) : null,
    command ? shown_text("The same on the command line", command) : null,
    python ? shown_text("The same in Python", python) : null,
  ].filter(Boolean));
}

/// Null: the answer is no prediction.
function best_of(result) {
  const best = result.candidates?.[0] ?? result.found ?? result;
  return best.schema === "attnsim.prediction.1" ? best : null;
}

const rows = [
  ["strategy", p => `${p.schedule} ${p.grid.join("x")}${p.ulysses > 1 ? ` U${p.ulysses}` : ""}`],
  ["time", p => p.time_s, "s"], ["computing", p => p.compute_s, "s"], ["exposed communication", p => p.exposed_communication_s, "s"],
  ["rate", p => p.tflops_per_device, "TFLOP/s a device"], ["sent by a rank", p => p.bytes_sent_per_rank.max / 2 ** 30, "GiB"],
  ["peak memory", p => p.peak_memory_bytes / 2 ** 30, "GiB"], ["bound by", p => `${p.bottleneck.kind} ${p.bottleneck.name}`],
];
const written = (value, unit) => typeof value === "number" ? `${Number(value.toPrecision(4))} ${unit}` : value;

/// The best of two answers, {question, answer} each; `forget` ends the comparison.
export function show_side_by_side(root, kept, now, forget) {
  const [one, other] = [best_of(kept.answer.result), best_of(now.answer.result)];
  root.hidden = !one || !other;
  if (root.hidden) return;
  const what = differences(kept.question, now.question);
  root.replaceChildren(
    element("h2", {}, "Side by side"),
    element("p", {class: "note"}, what.length ? what.join("; ") : "The same question."),
    table([["", "kept", "now", "now / kept"], ...rows.map(([name, get, unit]) => {
      const [a, b] = [get(one), get(other)];
      return [name, written(a, unit), written(b, unit), typeof a === "number" && a > 0 ? (b / a).toFixed(3) : ""];
    })]),
    element("button", {type: "button", onclick: forget}, "End the comparison"));
}

function differences(a, b) {
  const flat = q => ({cluster: q.cluster, ask: q.ask, schedules: q.schedules, ...q.fields});
  const [one, other] = [flat(a), flat(b)];
  return [...new Set([...Object.keys(one), ...Object.keys(other)])].filter(key => String(one[key] ?? "") !== String(other[key] ?? ""))
    .map(key => `${key}: ${one[key] || "as usual"}, now ${other[key] || "as usual"}`);
}

/// The cluster that is asked about: its drawing, what stands behind its figures.
export function show_cluster(root, cluster) {
  const drawing = element("div", {class: "drawing", tabindex: 0, role: "img", "aria-label": `Network of ${cluster.name}`});
  drawing.innerHTML = cluster.drawing ?? "";
  const trust = element("section", {id: "trust"}, element("h2", {}, "How far to trust this"),
    element("p", {class: "note"}, "What stands behind the figures of this cluster; intervals in the answer hold the profile's stated uncertainties."),
    table([["figures", "basis"], ...cluster.bases.map(b => [b.figures, b.basis])]),
    ...cluster.warnings.map(w => element("p", {class: "warning"}, w)));
  root.append(trust, element("section", {}, element("h2", {}, "The cluster"),
    element("p", {class: "note"}, `${cluster.name}: ${cluster.devices} x ${cluster.device}, bisection ${cluster.bisection}`), drawing));
  return show_trust(trust, cluster.device);
}
