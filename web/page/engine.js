// The simulator, running beside the page. One request is answered at a time; cancel() ends it at once.
//
//   const engine = new Engine();
//   const answer = await engine.ask({ask: "plan", cluster: "p5", fields: {seq: "1M"}}, (done, wanted) => ..., so_far => ...);
//
// An answer is what web/answers.hpp says, one so far, too. A request that is cancelled is answered by null.
async function compile(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status} ${response.statusText}`);
  return WebAssembly.compile(await response.arrayBuffer());  // whatever type the server says it has
}

export class Engine {
  #wasm = compile("attnsim.wasm");
  #worker = null;
  #waiting = new Map();
  #last = 0;

  async ask(request, progress = () => {}, so_far = () => {}) {
    const wasm = await this.#wasm;
    this.#worker ??= this.#start(wasm);
    const id = ++this.#last;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, {resolve, reject, progress, so_far});
      this.#worker.postMessage({id, request});
    });
  }

  get busy() { return this.#waiting.size > 0; }

  /// The next request starts a worker anew, of the module that is compiled already.
  cancel() {
    if (!this.busy) return;
    this.#worker.terminate();
    this.#worker = null;
    for (const {resolve} of this.#waiting.values()) resolve(null);
    this.#waiting.clear();
  }

  #fail(message) {
    this.#worker.terminate();
    this.#worker = null;
    for (const {reject} of this.#waiting.values()) reject(new Error(`the simulator cannot go on: ${message}`));
    this.#waiting.clear();
  }

  #start(wasm) {
    const worker = new Worker("worker.js");
    worker.onmessage = ({data}) => {
      const {resolve, progress, so_far} = this.#waiting.get(data.id);
      if (data.failed) return this.#fail(data.failed);
      if (data.so_far) return so_far(data.so_far);
      if (!data.answer) return progress(data.done, data.wanted);
      this.#waiting.delete(data.id);
      resolve(data.answer);
    };
    worker.onerror = event => this.#fail(event.message || "the worker ended");
    worker.postMessage({wasm});
    return worker;
  }
}
