// A cluster of the user's own: pasted or dropped files of other programs become a cluster file, which can be edited; so can a
// shipped one.
import {element} from "./elements.js";
import {own_cluster} from "./question.js";

/// `ask(request)` is the engine's; `taken(yaml)` is called with the file that is to be used from now on.
export function own_cluster_editor(importers, devices, ask, taken) {
  const id = name => `own-${name}`;
  const pasted = element("textarea", {id: id("pasted"), placeholder: "        GPU0  GPU1  ...\nGPU0     X    NV18"});
  const files = element("input", {id: id("files"), type: "file", multiple: true});
  const format = element("select", {id: id("format")}, element("option", {value: ""}, "recognised by itself"),
    ...importers.map(i => element("option", {value: i.name}, i.what)));
  const device = element("select", {id: id("device")}, element("option", {value: ""}, "as the file says"),
    ...devices.map(d => element("option", {value: d}, d)));
  const small = (name, hint) => element("input", {id: id(name), placeholder: hint, autocomplete: "off"});
  const nodes = small("nodes", "1"), rate = small("nic-bandwidth", "400 Gb/s");
  const fabric = small("fabric", "{kind: rail-optimized, nodes_per_leaf: 32}");
  const yaml = element("textarea", {id: id("yaml"), class: "file", spellcheck: "false", "aria-describedby": id("said")});
  const said = element("p", {id: id("said"), role: "status", class: "note"});
  const labelled = (control, name) => element("div", {class: "field"}, element("label", {for: control.id}, name), control);

  const read = async texts => {
    const answer = await ask({ask: "import", files: texts, as: format.value, device: device.value, nodes: nodes.value,
      "nic-bandwidth": rate.value, fabric: fabric.value, name: "own"});
    if (!answer) return;
    said.textContent = answer.error ? answer.error.message : answer.warnings.map(w => `warning: ${w}`).join("\n") || "Read.";
    if (answer.error) return;
    yaml.value = answer.yaml;
    taken(answer.yaml);
  };
  const named = async file => [file.name.replace(/^\.+|\//g, ""), await file.text()];
  const read_list = async list => read(Object.fromEntries(await Promise.all([...list].map(named))));
  files.addEventListener("change", () => read_list(files.files));
  const drop = element("div", {class: "drop",
    ondragover: event => { event.preventDefault(); drop.classList.add("over"); },
    ondragleave: () => drop.classList.remove("over"),
    ondrop: event => { event.preventDefault(); drop.classList.remove("over"); read_list(event.dataTransfer.files); }},
  labelled(pasted, "Paste nvidia-smi topo -m, NCCL's XML, Slurm's topology.conf, ..."), labelled(files, "or drop or choose files"),
  labelled(format, "format"), labelled(device, "devices"), labelled(nodes, "nodes like it"),
  labelled(rate, "bandwidth of a NIC that no file tells"), labelled(fabric, "fabric"),
  element("button", {type: "button", id: id("import"), onclick: () => read({pasted: pasted.value})}, "Read"));

  const root = element("details", {id: "own"}, element("summary", {}, "Your own cluster: paste, drop or edit"), drop,
    element("p", {}, element("button", {type: "button", onclick: () => taken(null)}, "Edit the chosen cluster's file")),
    labelled(yaml, "cluster file"),
    element("button", {type: "button", id: id("use"), onclick: () => taken(yaml.value)}, "Use this file"), said);
  return {
    root,
    show: text => { yaml.value = text; },
    /// "own.yaml:12: nodes: ...": the line is selected.
    point_at: message => {
      const line = new RegExp(`^${own_cluster}:(\\d+):`).exec(message)?.[1];
      said.textContent = line ? message : said.textContent;
      if (!line) return;
      const lines = yaml.value.split("\n"), from = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
      root.open = true;
      yaml.setSelectionRange(from, from + (lines[line - 1] ?? "").length);
    },
  };
}
