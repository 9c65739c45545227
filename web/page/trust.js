// How far to trust an answer: what was measured on such devices and held out of every fit, beside what was predicted. The files
// are reproduce/measured/*/points.csv, as `attnsim compare` writes them.
import {element, table} from "./elements.js";

/// Measurements by the names of devices' profiles, and what they are of; all held out of every fit.
const measured = {
  "h100-sxm5": {"h100": "Measured on H100"},
  "h200-sxm5": {
    "h200": "Measured on H200", "h200-again": "A second run", "h200-decode": "Inference: prefixes and decoding",
    "h200-layers": "A layer, and its matrix products", "h200-layers-again": "Layers of two more models, mended kernels",
    "h200-layers-kinds": "Layers of two more models, by kind"}};

const percent = d => `${(100 * d).toFixed(1)} %`;

async function points_of(machine) {
  const response = await fetch(`points-${machine}.csv`);
  if (!response.ok) throw new Error(`points-${machine}.csv: ${response.status}`);
  const [names, ...rows] = d3.csvParseRows(await response.text());  // csvParse makes functions of texts, which the page forbids
  return rows.map(row => d3.autoType(Object.fromEntries(names.map((name, i) => [name, row[i]]))));
}

function summary(parts) {
  return table([["part", "points", "median error", "95 % below", "in the 90 % interval"], ...parts.map(([part, points]) => {
    const errors = points.map(p => Math.abs(p.error)).sort(d3.ascending);
    const inside = points.filter(p => p.low_us <= p.measured_us && p.measured_us <= p.high_us).length;
    return [part, String(points.length), percent(d3.quantile(errors, 0.5)), percent(d3.quantile(errors, 0.95)), percent(inside / points.length)];
  })]);
}

const chart_of = points => ({kind: "scatter", unit: "s", measured: "measured", rows: points.map(p => {
  const [series, name] = p.what.split(/: (.*)/s);
  return {series, name, measured: p.measured_us / 1e6, predicted: p.predicted_us / 1e6, low: p.low_us / 1e6, high: p.high_us / 1e6};
})});

/// Every point of a part is drawn when it is asked for.
function part_view(machine, part, points) {
  const section = `${machine}-${part}`;
  const figure = element("figure", {"data-section": section});
  const folded = element("details", {ontoggle: () => {
    if (folded.open && !figure.firstChild) draw_charts(folded, {[section]: chart_of(points)});
  }}, element("summary", {}, `Points: ${part}`),
  element("section", {}, element("h3", {}, `${machine}: ${part}, predicted against measured`), figure));
  return folded;
}

/// What there is about a device, at the end of `root`.
export async function show_trust(root, device) {
  const machines = measured[device];
  if (!machines) {
    root.append(element("p", {class: "note"},
      `No ${device} was measured with this program; its figures are published or assumed, as the table says.`));
    return;
  }
  for (const [machine, what] of Object.entries(machines)) {
    const points = await points_of(machine);
    const parts = [...new Set(points.map(p => p.part))].map(part => [part, points.filter(p => p.part === part)]);
    root.append(element("h3", {}, `${what}, held out of every fit`),
      summary(parts), ...parts.map(([part, points]) => part_view(machine, part, points)));
  }
}
