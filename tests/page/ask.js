// Asks the page's module in node: ask.js PAGE <requests >answers, a JSON object a line. A line's "milliseconds" is added to
// its answer.
"use strict";
const fs = require("fs");
const folder = fs.realpathSync(process.argv[2]);
const wasmBinary = fs.readFileSync(`${folder}/attnsim.wasm`);

require(`${folder}/attnsim.js`)({wasmBinary}).then(module => {
  for (const line of fs.readFileSync(0, "utf8").split("\n").filter(Boolean)) {
    const from = performance.now();
    const answer = JSON.parse(module.answer(line, () => {}, () => {}));
    answer.milliseconds = performance.now() - from;
    fs.writeSync(1, `${JSON.stringify(answer)}\n`);
  }
});
