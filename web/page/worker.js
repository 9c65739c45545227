// Runs the module beside the page: takes {id, request}, sends {id, done, wanted} and {id, so_far} while it works and then {id, answer}, or
// {id, failed} where the module itself cannot go on, such as without memory.
// A request is ended by ending its worker; the page starts another with the module that is compiled already.
"use strict";
importScripts("attnsim.js");

let module = null;

/// `wasm` is a compiled WebAssembly.Module.
const start = wasm => attnsim_module({
  instantiateWasm: (imports, done) => {
    WebAssembly.instantiate(wasm, imports).then(instance => done(instance, wasm));
    return {};
  },
});

onmessage = async ({data}) => {
  if (data.wasm) {
    module = start(data.wasm);
    return;
  }
  const {id, request} = data;
  try {
    const answers = await module;
    const text = answers.answer(JSON.stringify(request), (done, wanted) => postMessage({id, done, wanted}),
      so_far => postMessage({id, so_far: JSON.parse(so_far)}));
    postMessage({id, answer: JSON.parse(text)});
  } catch (error) {
    postMessage({id, failed: String(error.message ?? error)});
  }
};
