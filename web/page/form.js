// The controls, made from the table of the fields that what is asked has: those of most questions first, the others folded away.
//
//   const form = new Form(by_id("question"), tables, below_cluster, changed);   // changed(question, live): live: by a slider
//   form.show(question)
import {element} from "./elements.js";
import {own_cluster, own_model} from "./question.js";

const usual_fields = ["nodes", "seq", "model", "heads", "kv-heads", "head-dim", "mask", "pass",
  "task", "global-batch", "micro-batch", "tp", "cp", "pp", "dp", "recompute", "shard"];
const own_text = {cluster: own_cluster, model: own_model};
const titles = {cluster: "Cluster", attention: "Attention", strategy: "Strategy", reading: "Reading", step: "Step"};

const powers = (from, to) => {
  const steps = [];
  for (let n = from; n <= to; n *= 2) steps.push(n >= 2 ** 20 ? `${n / 2 ** 20}M` : n >= 1024 ? `${n / 1024}K` : `${n}`);
  return steps;
};
/// A slider's values; `key`: of the cluster file, as the field "set" has it.
const sliders = [
  {name: "tokens", field: "seq", steps: powers(4096, 2 ** 26)},
  {name: "nodes", field: "nodes", steps: powers(1, 128)},
  {name: "network a NIC", key: "nics.bandwidth", steps: [50, 100, 200, 400, 800, 1600, 3200].map(rate => `${rate} Gb/s`)},
];
const modes = [
  ["plan", "Rank all strategies"], ["predict", "One strategy"], ["what-if", "Vary one value"], ["grids", "Map of grids"],
  ["search", "Search for a better one"], ["step", "A whole step"],
];

export class Form {
  #question = null;
  #controls = new Map();
  #rows = new Map();

  #body = element("div");
  #fields = null;

  /// `below_cluster` is an element that stands with the cluster's fields.
  constructor(root, tables, below_cluster, changed) {
    this.root = root;
    this.tables = tables;
    this.below_cluster = below_cluster;
    this.changed = live => changed(structuredClone(this.#question), live);
    root.replaceChildren(this.#mode(), this.#body, element("p", {}, element("button", {class: "main", id: "ask"}, "Answer")));
    root.addEventListener("submit", event => { event.preventDefault(); this.changed(false); });
  }

  /// The controls of a table of fields.
  #build(fields) {
    const mode = this.#controls.get("ask");
    this.#controls = new Map([["ask", mode]]);
    this.#rows = new Map();
    this.#fields = fields;
    const of = group => fields.filter(f => f.group === group);
    const cluster = this.#group("cluster", of("cluster"), this.#cluster(this.tables.clusters));
    cluster.append(this.below_cluster);
    this.#body.replaceChildren(...[
      this.#sliders(),
      cluster,
      of("step").length ? this.#group("step", of("step")) : null,
      this.#group("attention", of("attention")),
      this.#strategies(this.tables.schedules, of("strategy"), of("reading")),
    ].filter(Boolean));
  }

  show(question) {
    this.#question = structuredClone(question);
    if (this.tables.of(question.ask) !== this.#fields) this.#build(this.tables.of(question.ask));
    for (const put of this.#controls.values()) put();
    this.point_at(null);
  }

  /// Marks the control of the field that an error is about.
  point_at(field) {
    for (const [name, row] of this.#rows) row.classList.toggle("invalid", name === field);
    const row = this.#rows.get(field), folded = row?.closest("details");
    if (folded) folded.open = true;
  }

  #set(name, value) {
    if (value === "" || value.length === 0) delete this.#question.fields[name];
    else this.#question.fields[name] = value;
  }

  /// Heads are the model's from then on.
  #take_model(name) {
    this.#set("model", name);
    if (name) for (const size of ["heads", "kv-heads", "head-dim"]) this.#set(size, "");
  }

  #mode() {
    // What is given stays where it means the same: a step's tp and dtype are others than a layer's.
    const take = value => {
      const groups = fields => new Map(fields.map(f => [f.name, f.group]));
      const before = groups(this.#fields), after = groups(this.tables.of(value));
      const stays = ([name]) => after.has(name) && (name === "model" || after.get(name) === before.get(name));
      const fields = Object.fromEntries(Object.entries(this.#question.fields).filter(stays));
      if (value === "step") fields.model ??= "llama3-8b";
      this.show({...this.#question, ask: value, fields});
      this.changed(false);
    };
    const buttons = modes.map(([value, name]) => element("label", {},
      element("input", {type: "radio", name: "ask", value, onchange: () => take(value)}), ` ${name}`));
    const vary = element("input", {id: "vary", placeholder: "seq=64K..4M",
      onchange: () => { this.#question.vary = vary.value; }});
    const row = element("div", {class: "field"}, element("label", {for: "vary"}, "value to vary, doubling"), vary,
      element("small", {}, "a field, or a key of the cluster file: nics.bandwidth=100 Gb/s..1600 Gb/s"));
    this.#controls.set("ask", () => {
      for (const b of buttons) b.firstChild.checked = b.firstChild.value === this.#question.ask;
      row.hidden = this.#question.ask !== "what-if";
      vary.value = this.#question.vary ||= row.hidden ? "" : "seq=64K..4M";
    });
    return element("fieldset", {class: "choices"}, element("legend", {}, "Question"), ...buttons, row);
  }

  #group(group, fields, ...before) {
    const first = fields.filter(f => usual_fields.includes(f.name)), others = fields.filter(f => !usual_fields.includes(f.name));
    return element("fieldset", {}, element("legend", {}, titles[group]), ...before, ...first.map(f => this.#field(f)),
      others.length ? element("details", {}, element("summary", {}, `More of the ${group}`), ...others.map(f => this.#field(f))) : null);
  }

  #field(f) {
    const id = `field-${f.name}`, help = `${id}-help`;
    const control = this.#control(f, id, help);
    const row = element("div", {class: "field"}, element("label", {for: id}, f.name.replaceAll("-", " ")), ...control,
      f.name === "model" ? this.#own_model() : null,
      element("small", {id: help}, f.means));
    this.#rows.set(f.name, row);
    return row;
  }

  #control(f, id, help) {
    const at = {id, "aria-describedby": help};
    if (f.form === "switch") {
      const box = element("input", {...at, type: "checkbox", onchange: () => this.#set(f.name, box.checked ? "true" : "")});
      this.#controls.set(f.name, () => { box.checked = this.#question.fields[f.name] === "true"; });
      return [box];
    }
    if (f.form === "list") {
      const lines = element("textarea", {...at, placeholder: "nics.bandwidth=800 Gb/s",
        onchange: () => this.#set(f.name, lines.value.split("\n").filter(Boolean))});
      this.#controls.set(f.name, () => { lines.value = (this.#question.fields[f.name] ?? []).join("\n"); });
      return [lines];
    }
    const closed = f.choices.length > 0 && !f.open;
    const options = f.choices.map(name => element("option", {value: name}, name));
    const value = closed
      ? element("select", at, element("option", {value: ""}, f.usual ? `${f.usual} (usual)` : "as is usual"), ...options)
      : element("input", {...at, placeholder: f.usual || null, autocomplete: "off", spellcheck: "false",
        list: options.length ? `${id}-list` : null});
    value.addEventListener("change", () => {
      if (f.name === "model") this.#take_model(value.value.trim());
      else this.#set(f.name, value.value.trim());
      this.#refresh();
    });
    this.#controls.set(f.name, () => { value.value = this.#question.fields[f.name] ?? ""; });
    return closed || !options.length ? [value] : [value, element("datalist", {id: `${id}-list`}, ...options)];
  }

  /// A pasted config.json is the model.
  #own_model() {
    const text = element("textarea", {id: "own-model", "aria-label": "config.json", placeholder: "{\"num_attention_heads\": 64, ...}",
      onchange: () => {
        this.#question.files[own_model] = text.value;
        this.#take_model(text.value.trim() ? own_model : "");
        this.#refresh();
      }});
    this.#controls.set("own model", () => { text.value = this.#question.files[own_model] ?? ""; });
    return element("details", {}, element("summary", {}, "Paste a Hugging Face config.json"), text);
  }

  #cluster(shipped) {
    const choose = element("select", {id: "cluster",
      onchange: () => { this.#question.cluster = choose.value; this.#refresh(); }});
    this.#controls.set("cluster", () => {
      const {cluster, files} = this.#question;
      const names = own_cluster in files ? [own_cluster, ...shipped] : shipped;
      const all = names.includes(cluster) ? names : [cluster, ...names];
      choose.replaceChildren(...all.map(name => element("option", {value: name}, name === own_cluster ? "your own" : name)));
      choose.value = cluster;
    });
    const row = element("div", {class: "field"}, element("label", {for: "cluster"}, "cluster"), choose);
    this.#rows.set("cluster", row);
    return row;
  }

  #sliders() {
    const rows = sliders.map(({name, field, key, steps}) => {
      const id = `slider-${field ?? "bandwidth"}`;
      const range = element("input", {id, type: "range", min: 0, max: steps.length - 1, step: 1, oninput: () => {
        const step = steps[range.value];
        if (field) this.#set(field, step);
        else this.#set("set", [...this.#settings().filter(s => !s.startsWith(`${key}=`)), `${key}=${step}`]);
        this.#refresh();
        this.changed(true);
      }});
      const says = element("output", {for: id});
      const of_key = () => this.#settings().find(s => s.startsWith(`${key}=`))?.slice(key.length + 1);
      const given = () => field ? this.#question.fields[field] : of_key();
      this.#controls.set(id, () => {
        const at = steps.indexOf(given());
        range.value = at >= 0 ? at : Math.floor(steps.length / 2);
        const text = given() ?? "as in the file";
        says.textContent = text;
        range.setAttribute("aria-valuetext", text);
      });
      return element("div", {class: "field"}, element("label", {for: id}, `${name}: `, says), range);
    });
    return element("fieldset", {}, element("legend", {}, "Slide"), ...rows);
  }

  #settings() { return this.#question.fields.set ?? []; }

  #strategies(schedules, fields, reading) {
    const boxes = schedules.map(s => element("label", {title: s.summary},
      element("input", {type: "checkbox", value: s.name, onchange: () => {
        this.#question.schedules = boxes.map(b => b.firstChild).filter(b => b.checked).map(b => b.value).join(",");
      }}), ` ${s.name}`));
    const only = element("details", {}, element("summary", {}, "Only some schedules"),
      element("div", {class: "choices", role: "group", "aria-label": "Schedules to rank"}, ...boxes));
    const is_first = f => f.name === "schedule" || f.name === "grid";
    const first = fields.filter(is_first).map(f => this.#field(f));
    const own = element("details", {}, element("summary", {}, "More of the strategy"),
      ...[...fields.filter(f => !is_first(f)), ...reading].map(f => this.#field(f)));
    this.#controls.set("schedules", () => {
      const chosen = this.#question.schedules.split(",");
      for (const b of boxes) b.firstChild.checked = chosen.includes(b.firstChild.value);
      const ranks = ["plan", "what-if", "grids"].includes(this.#question.ask);
      only.hidden = !ranks;
      for (const row of first) row.hidden = ranks;
    });
    return element("fieldset", {}, element("legend", {}, titles.strategy), only, ...first, own);
  }

  #refresh() { for (const put of this.#controls.values()) put(); }
}
