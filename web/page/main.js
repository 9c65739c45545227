// The page: a question (form.js, own_cluster.js) goes to the engine, its answer into views. The question is the part of the
// address after #, so a link asks it again.
import {by_id, element} from "./elements.js";
import {Engine} from "./engine.js";
import {Form} from "./form.js";
import {own_cluster_editor} from "./own_cluster.js";
import {first_question, from_fragment, own_cluster, request_of, to_fragment} from "./question.js";
import {show_cluster, show_more, show_report, show_side_by_side} from "./views.js";

const engine = new Engine();
let tables, form, editor;
let question;         // as last asked
let answering = false;
let next = null;      // what is to be asked when the answer is there
let now = null, kept = null;  // {question, answer}

function say(text) { by_id("status").textContent = text; }

function show_progress(done, wanted) {
  const bar = by_id("progress");
  if (wanted) bar.setAttribute("max", wanted), bar.value = done;
  else bar.removeAttribute("value");
}

function set_busy(busy) {
  answering = busy;
  for (const id of ["progress", "cancel"]) by_id(id).hidden = !busy;
  by_id("answer").setAttribute("aria-busy", busy);
  if (busy) by_id("progress").removeAttribute("value");
}

function show_error(error) {
  const place = by_id("error");
  place.hidden = !error;
  place.textContent = error ? error.message : "";
  form.point_at(error ? error.field : null);
  if (error) editor.point_at(error.message);
}

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

/// A slider moves faster than answers come: what is asked last is answered last, what was between is left out.
async function ask(asked, live) {
  history.replaceState(null, "", `#${to_fragment(asked)}`);
  if (answering && live && asked.ask === "predict") { next = asked; return; }
  engine.cancel();
  next = null;
  question = asked;
  set_busy(true);
  if (!live) say("Asking…");
  const from = performance.now();
  let answer;
  try {
    answer = await engine.ask(request_of(asked), show_progress, so_far => {
      if (question === asked) show_so_far(so_far);
    });
  } catch (error) {
    answer = {error: {message: error.message}};
  }
  if (question !== asked) return;  // another took its place
  set_busy(false);
  if (!answer) return say("Cancelled.");
  show_error(answer.error);
  if (answer.error) say("");
  else show(asked, answer, performance.now() - from);
  if (next && !same(next, asked)) ask(next, true);
}

function show_so_far(answer) {
  show_report(by_id("answer"), answer);
  by_id("more").replaceChildren();
  document.body.dataset.soFar = Number(document.body.dataset.soFar ?? 0) + 1;  // tests wait for it
}

function show(asked, answer, milliseconds) {
  now = {question: asked, answer};
  show_report(by_id("answer"), answer);
  show_more(by_id("more"), asked, answer, tables, by_id("answer"));
  by_id("more").prepend(element("button", {type: "button", id: "keep", onclick: keep}, "Keep this answer to compare"));
  if (kept) show_side_by_side(by_id("kept"), kept, now, forget);
  const counts = Object.entries(answer.counts ?? {}).map(([what, number]) => `${number} ${what}`);
  say(`Answered in ${(milliseconds / 1000).toFixed(2)} s. ${counts.length ? `Strategies: ${counts.join(", ")}.` : ""}`);
  document.body.dataset.answers = Number(document.body.dataset.answers ?? 0) + 1;  // tests wait for it
  ask_about_cluster(asked);
}

function keep() { kept = now; show_side_by_side(by_id("kept"), kept, now, forget); }
function forget() { kept = null; by_id("kept").hidden = true; }

let about = null;  // timer of what is asked when nothing else is

function ask_about_cluster(asked) {
  clearTimeout(about);
  about = setTimeout(async () => {
    if (engine.busy) return;
    const fields = Object.fromEntries(Object.entries(asked.fields).filter(([name]) => tables.groups.get(name) === "cluster"));
    const cluster = await engine.ask({...request_of(asked), ask: "cluster", fields});
    if (!cluster || cluster.error || now.question !== asked) return;
    await show_cluster(by_id("more"), cluster);
    document.body.dataset.cluster = cluster.name;
  }, 250);
}

let soon = null;

/// A plan waits until the slider rests.
function changed(asked, live) {
  clearTimeout(soon);
  if (live && asked.ask !== "predict") soon = setTimeout(() => ask(asked, live), 200);
  else ask(asked, live);
}

async function use_cluster(yaml) {
  if (yaml === null) {
    const shown = await engine.ask({ask: "cluster", cluster: question.cluster, files: question.files});
    if (shown?.yaml) editor.show(shown.yaml);
    return;
  }
  const asked = structuredClone(question);
  asked.files[own_cluster] = yaml;
  asked.cluster = own_cluster;
  for (const name of ["nodes", "device", "set", "ranks"]) delete asked.fields[name];
  form.show(asked);
  ask(asked, false);
}

function restore() {
  const asked = from_fragment(location.hash, tables.lists) ?? first_question();
  form.show(asked);
  if (asked.files[own_cluster]) editor.show(asked.files[own_cluster]);
  ask(asked, false);
}

async function start() {
  tables = await engine.ask({ask: "tables"});
  tables.of = ask => ({step: tables.step_fields, search: tables.search_fields})[ask] ?? tables.fields;
  const all_of = form => new Set([...tables.fields, ...tables.step_fields].filter(f => f.form === form).map(f => f.name));
  tables.switches = all_of("switch");
  tables.lists = all_of("list");
  tables.groups = new Map(tables.fields.map(f => [f.name, f.group]));
  const devices = tables.fields.find(f => f.name === "device").choices;
  editor = own_cluster_editor(tables.importers, devices, request => engine.ask(request), use_cluster);
  form = new Form(by_id("question"), tables, editor.root, changed);
  by_id("cancel").addEventListener("click", () => { next = null; engine.cancel(); });
  window.addEventListener("hashchange", restore);
  restore();
}

start().catch(error => { by_id("loading").textContent = `The page cannot start: ${error.message}`; });
