// What is asked, as the page keeps it: {ask, cluster, fields, schedules, vary, files}. It is the request for the engine, and
// the link's part after #. Fields are texts by their names; those that are lists are arrays.
export const own_cluster = "own.yaml";
export const own_model = "config.json";

const evaluations = 200;  // of a search

export const first_question = () => ({
  ask: "plan", cluster: "nd-h100-v5", schedules: "", vary: "", files: {},
  fields: {nodes: "8", seq: "1M", heads: "64", "kv-heads": "8", "head-dim": "128"},
});

/// "ask=plan&cluster=p5&seq=1M&file.own.yaml=..."
export function to_fragment(question) {
  const given = new URLSearchParams();
  for (const key of ["ask", "cluster", "schedules", "vary"]) if (question[key]) given.set(key, question[key]);
  for (const [name, value] of Object.entries(question.fields)) for (const one of [value].flat()) given.append(name, one);
  for (const [name, text] of Object.entries(used_files(question))) given.set(`file.${name}`, text);
  return given.toString();
}

/// Null: nothing is asked. `lists` are the names of fields that take several values.
export function from_fragment(fragment, lists) {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  if (!given.has("cluster")) return null;
  const question = {...first_question(), fields: {}, ask: "plan"};
  for (const [key, value] of given) {
    if (["ask", "cluster", "schedules", "vary"].includes(key)) question[key] = value;
    else if (key.startsWith("file.")) question.files[key.slice(5)] = value;
    else if (lists.has(key)) (question.fields[key] ??= []).push(value);
    else question.fields[key] = value;
  }
  return question;
}

function used_files({cluster, fields, files}) {
  const used = {};
  for (const name of [cluster, fields.model, fields.device]) if (name in files) used[name] = files[name];
  return used;
}

export const request_of = question => ({
  ask: question.ask, cluster: question.cluster, fields: question.fields, schedules: question.schedules,
  vary: question.vary, files: used_files(question), views: true, top: 20, evaluations,
});

const quoted = text => /^[\w.,:/+@%-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

const ranks = ask => ask === "plan" || ask === "what-if";

/// The same on the command line. `switches` are the names of fields that take no value there.
export function command_of(question, switches) {
  const {ask, cluster, fields, schedules, vary} = question;
  if (ask === "grids") return null;
  const words = ["attnsim", ask === "what-if" ? "plan" : ask, quoted(cluster)];
  for (const [name, value] of Object.entries(fields)) {
    if (ranks(ask) && ["schedule", "by"].includes(name)) continue;
    for (const one of [value].flat()) words.push(`--${name}`, ...(switches.has(name) ? [] : [quoted(one)]));
  }
  if (ranks(ask) && schedules) words.push("--schedules", quoted(schedules));
  if (ask === "search") words.push("--evaluations", evaluations);
  if (ask === "what-if") words.push("--what-if", quoted(vary));
  return words.join(" ");
}

const text = value => JSON.stringify(value);

/// The same in Python. `groups` has each field's.
export function python_of(question, groups) {
  const {ask, cluster, fields, schedules} = question;
  if (ask === "step") return python_of_step(question, groups);
  if ((ask !== "predict" && ask !== "plan") || fields.pad) return null;  // Python has pad_to, a number
  const elsewhere = ["ranks", "set", "seq", "pass", "by"];
  const of = group => Object.entries(fields).filter(([name]) => groups.get(name) === group && !elsewhere.includes(name));
  const keywords = list => list.map(([name, value]) => `${name.replaceAll("-", "_")}=${value === "true" ? "True" : text(value)}`);
  const set = Object.fromEntries((fields.set ?? []).map(one => one.split(/=(.*)/s, 2)));
  const on = [text(cluster), ...keywords(of("cluster")), ...(fields.set ? [`set=${text(set)}`] : [])];
  const strategy = of("strategy").filter(([name]) => ask === "predict" || name !== "schedule");
  const wanted = ask === "predict" && !fields.schedule ? [["schedule", "ring"], ...strategy] : strategy;
  const rest = [];
  if (wanted.length) rest.push(`attnsim.Strategy(${keywords(wanted).join(", ")})`);
  if (ask === "plan" && schedules) rest.push(`schedules=${text(schedules.split(","))}`);
  if (fields.ranks) rest.push(`ranks=${text(fields.ranks)}`);
  if (fields.pass) rest.push(`pass_=${text(fields.pass)}`);
  if (fields.by && ask === "predict") rest.push(`by=${text(fields.by)}`);
  return [
    "import attnsim", "",
    `cluster = attnsim.Cluster(${on.join(", ")})`,
    `attention = attnsim.Attention(${[text(fields.seq ?? ""), ...keywords(of("attention"))].join(", ")})`,
    `print(attnsim.${ask}(${["cluster", "attention", ...rest].join(", ")}))`,
  ].join("\n");
}

function python_of_step({cluster, fields}, groups) {
  const written = fields => Object.entries(fields).map(([name, value]) =>
    `${name.replaceAll("-", "_")}=${value === "true" ? "True" : text(value)}`);
  const is_of_cluster = ([name]) => groups.get(name) === "cluster" && !["set", "ranks"].includes(name);
  const {set, ...others} = fields;
  const on = Object.fromEntries(Object.entries(others).filter(is_of_cluster));
  const rest = Object.fromEntries(Object.entries(others).filter(one => !is_of_cluster(one)));
  const keys = set ? [`set=${text(Object.fromEntries(set.map(one => one.split(/=(.*)/s, 2))))}`] : [];
  return [
    "import attnsim", "",
    `cluster = attnsim.Cluster(${[text(cluster), ...written(on), ...keys].join(", ")})`,
    `print(attnsim.step(${["cluster", ...written(rest)].join(", ")}))`,
  ].join("\n");
}
