// The page in headless Chromium: node --test browser.test.js, with PAGE (its folder), MODULES (node_modules), CHROMIUM and
// PROGRAM (attnsim) set.
"use strict";
const assert = require("node:assert/strict");
const {execFileSync} = require("node:child_process");
const fs = require("node:fs");
const http = require("node:http");
const os = require("node:os");
const path = require("node:path");
const {after, before, test} = require("node:test");
const puppeteer = require(`${process.env.MODULES}/puppeteer-core`);

const types = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm"};
let server, browser, address, saved;

before(async () => {
  server = http.createServer((request, response) => {
    const name = new URL(request.url, "http://page").pathname.slice(1) || "index.html";
    const file = path.join(process.env.PAGE, name);
    if (!fs.existsSync(file)) return response.writeHead(404).end();
    response.writeHead(200, {"content-type": types[path.extname(file)] ?? "text/plain"}).end(fs.readFileSync(file));
  });
  await new Promise(listening => server.listen(0, "127.0.0.1", listening));
  address = `http://127.0.0.1:${server.address().port}/`;
  saved = fs.mkdtempSync(path.join(os.tmpdir(), "attnsim-page-"));
  browser = await puppeteer.launch({executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]});
});

after(async () => {
  await browser.close();
  server.close();
  // The browser may still have been saving what a test does not wait for.
  fs.rmSync(saved, {recursive: true});
});

const small = "#ask=plan&cluster=pcie-8&seq=64K&heads=16&schedules=ring,ulysses,mesh";
const one = "#ask=predict&cluster=pcie-8&seq=64K&heads=16&schedule=ring";

/// A page whose console stays empty and that asks no other host, after its first answer or error.
async function open(fragment, width = 1300, prepare = () => {}, screen = {}) {
  const page = await browser.newPage();
  await page.evaluateOnNewDocument(prepare);
  page.setDefaultTimeout(60000);
  page.said = [];
  page.on("console", message => page.said.push(message.text()));
  page.on("pageerror", error => page.said.push(error.message));
  page.on("request", request => {
    if (!request.url().startsWith(address) && !/^(data|blob):/.test(request.url())) page.said.push(`asked ${request.url()}`);
  });
  await page.setViewport({width, height: 900, ...screen});
  await page.goto(address + fragment);
  await page.waitForFunction(() => document.body.dataset.answers || document.querySelector("#error:not([hidden])"));
  return page;
}

async function close(page) {
  assert.deepEqual(page.said, []);
  await page.close();
}

const text = (page, selector) => page.$eval(selector, element => element.textContent);
const answered = (page, times) => page.waitForFunction(n => Number(document.body.dataset.answers) >= n, {}, times);
const set = (page, selector, value, event = "change") => page.$eval(selector, (element, given, name) => {
  element.value = given;
  element.dispatchEvent(new Event(name));
}, value, event);

test("loads and ranks, without a network from then on", async () => {
  const page = await open(small);
  assert.match(await text(page, "#answer h1"), /^Plan: attention on pcie-8, 8 ranks$/);
  assert.equal((await page.$$("#answer section")).length, 6);
  assert.ok((await page.$$("#answer .mark")).length > 20);
  assert.match(await text(page, "#settings-text"), /^#/);
  await page.setOfflineMode(true);
  await set(page, "#field-heads", "32");
  await page.click("#ask");
  await answered(page, 2);
  assert.match(await text(page, "#answer dd"), /32 heads/);
  await close(page);
});

test("a slider is followed by the answer and the link", async () => {
  const page = await open(one);
  const seconds = [];
  for (const [at, tokens] of [["5", "131072"], ["6", "262144"]]) {
    const times = Number(await page.$eval("body", body => body.dataset.answers));
    const from = Date.now();
    await set(page, "#slider-seq", at, "input");
    await answered(page, times + 1);
    seconds.push((Date.now() - from) / 1000);
    assert.ok((await text(page, "#answer dd")).startsWith(`${tokens} tokens`));
  }
  console.log(`slider to answer: ${seconds.map(s => s.toFixed(2)).join(", ")} s`);
  assert.ok(Math.min(...seconds) < 1.5);
  assert.match(page.url(), /seq=256K/);
  await set(page, "#slider-bandwidth", "4", "input");
  await answered(page, 4);
  assert.match(decodeURIComponent(page.url()), /set=nics\.bandwidth=800\+Gb\/s/);
  await close(page);
});

test("a link asks again, with what is folded away", async () => {
  const page = await open("#ask=predict&cluster=dgx-h100&nodes=2&seq=128K&heads=16&schedule=mesh&grid=4x4&placement=tile-in-node");
  assert.equal(await page.$eval("#field-grid", input => input.value), "4x4");
  assert.equal(await page.$eval("#field-placement", input => input.value), "tile-in-node");
  assert.match(await text(page, "#answer .answer"), /^mesh 4x4: /);
  assert.equal(await text(page, "#more pre"), "attnsim predict dgx-h100 --nodes 2 --seq 128K --heads 16 --schedule mesh --grid 4x4 --placement tile-in-node");
  await close(page);
});

test("a timeline is enlarged and moved by keys", async () => {
  const page = await open(one);
  const starts = () => page.$$eval("#answer section:nth-of-type(3) .mark title", titles => titles.map(t => t.textContent).join());
  await page.$eval("#answer section:nth-of-type(3) svg", timeline => timeline.focus());
  const seen = [await starts()];
  for (const key of ["+", "+", "PageDown", "PageUp", "Home"]) {
    await page.keyboard.press(key);
    seen.push(await starts());
  }
  assert.ok(seen[1].length < seen[0].length && seen[2].length < seen[1].length);
  assert.notEqual(seen[3], seen[2]);
  assert.equal(seen[4], seen[2]);
  assert.equal(seen[5], seen[0]);
  await close(page);
});

/// What a timeline draws, as its marks say it.
const timeline = "#answer section:nth-of-type(3) svg";
const axis = `${timeline} .axis`;
const drawn = page => page.$$eval(`${timeline} .mark title`, titles => titles.map(t => t.textContent));

test("a timeline that has the focus is enlarged by the wheel; else the page scrolls", async () => {
  const page = await open(one);
  await page.$eval(timeline, svg => svg.scrollIntoView({block: "center"}));
  const box = await (await page.$(timeline)).boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  const all = (await drawn(page)).length;
  await page.mouse.wheel({deltaY: -400});
  assert.equal((await drawn(page)).length, all);
  await page.$eval(timeline, svg => { svg.scrollIntoView({block: "center"}); svg.focus({preventScroll: true}); });
  const from = await page.evaluate(() => window.scrollY);
  for (let i = 0; i < 3; ++i) await page.mouse.wheel({deltaY: -400});
  await page.waitForFunction((selector, most) => document.querySelectorAll(`${selector} .mark`).length < most, {}, timeline, all);
  assert.equal(await page.evaluate(() => window.scrollY), from);
  await page.keyboard.press("Home");
  assert.equal((await drawn(page)).length, all);
  await close(page);
});

test("two fingers enlarge a timeline, one moves it", async () => {
  const page = await open(one, 390, () => {}, {hasTouch: true});
  await page.$eval(timeline, svg => svg.scrollIntoView({block: "center"}));
  const box = await (await page.$(timeline)).boundingBox();
  const cdp = await page.createCDPSession(), y = box.y + box.height / 2, middle = 200;
  const touch = (type, ...xs) => cdp.send("Input.dispatchTouchEvent", {type, touchPoints: xs.map((x, id) => ({x, y, id}))});
  const all = await drawn(page);
  await touch("touchStart", middle);
  await touch("touchMove", middle - 30);
  await touch("touchEnd");
  assert.deepEqual(await drawn(page), all);
  // Each move is seen, though the first has changed what the fingers lie on.
  const moved = async (...xs) => {
    const before = await page.$eval(axis, ticks => ticks.innerHTML);
    await touch("touchMove", ...xs);
    await page.waitForFunction((ticks, old) => document.querySelector(ticks).innerHTML !== old, {}, axis, before);
  };
  await touch("touchStart", middle - 10, middle + 10);
  for (const apart of [30, 60, 90]) await moved(middle - apart, middle + apart);
  await touch("touchEnd");
  const some = await drawn(page);
  assert.ok(some.length < all.length, `${some.length} of ${all.length}`);
  await touch("touchStart", middle);
  for (const by of [30, 60, 90]) await moved(middle - by);
  await touch("touchEnd");
  await close(page);
});

test("a ranking is shown while the plan is worked out", async () => {
  const page = await open(one);
  await page.evaluate(() => { location.hash = "#ask=plan&cluster=dgx-h100&nodes=2&seq=256K&heads=64&kv-heads=8"; });
  await page.waitForFunction(() => document.body.dataset.soFar >= 2);
  const [title, busy] = await page.$eval("#answer", answer => [answer.querySelector("h1").textContent, answer.getAttribute("aria-busy")]);
  assert.match(title, /^Plan( so far)?: attention on dgx-h100, 16 ranks$/);
  assert.equal(busy, String(title.startsWith("Plan so far")));
  await answered(page, 2);
  assert.match(await text(page, "#answer h1"), /^Plan: attention on dgx-h100, 16 ranks$/);
  await close(page);
});

const answer_of = command => JSON.parse(execFileSync(process.env.PROGRAM,
  [...command.split(" ").slice(1), "--quiet", "--format", "json"]));

test("a whole step is asked by its own fields", async () => {
  const page = await open("#ask=step&cluster=dgx-h100&nodes=1&model=llama3-8b&seq=8K&shard=parameters&recompute=selective");
  assert.match(await text(page, "#answer h1"), /^Step of llama3-8b on dgx-h100$/);
  assert.equal((await page.$$("#answer section")).length, 2);
  const [command, python] = await page.$$eval("#more pre", all => all.map(pre => pre.textContent));
  assert.equal(command, "attnsim step dgx-h100 --nodes 1 --model llama3-8b --seq 8K --shard parameters --recompute selective");
  assert.match(python, /^print\(attnsim\.step\(cluster, model="llama3-8b", seq="8K", shard="parameters", recompute="selective"\)\)$/m);
  const [, value, unit] = /: ([\d.]+) (s|ms), /.exec(await text(page, "#answer .answer"));
  assert.equal(Number(value), Number((answer_of(command).step_time_s * (unit === "ms" ? 1e3 : 1)).toPrecision(4)));
  await set(page, "#field-tp", "3");
  await page.click("#ask");
  await page.waitForSelector("#error:not([hidden])");
  assert.ok(await page.$eval("#field-tp", input => input.closest(".field").classList.contains("invalid")));
  await page.click("input[name=ask][value=predict]");
  await answered(page, 2);
  assert.match(await text(page, "#answer h1"), /^Prediction: attention on dgx-h100, 8 ranks$/);
  assert.equal(await page.$("#field-cp"), null);
  await close(page);
});

test("a search finds what the command line finds", async () => {
  const page = await open("#ask=search&cluster=pcie-8&seq=16K&heads=16&pass=forward");
  assert.match(await text(page, "#answer h1"), /^Search: attention on pcie-8, 8 ranks$/);
  assert.equal(await page.$("#field-grid"), null);
  const command = await text(page, "#more pre"), found = answer_of(command).found;
  assert.equal(command, "attnsim search pcie-8 --seq 16K --heads 16 --pass forward --evaluations 200");
  assert.ok((await text(page, "#answer .answer")).startsWith(`${found.schedule} `));
  await close(page);
});

test("what is shown for the command line and Python gives the same answer", async () => {
  const page = await open("#ask=predict&cluster=dgx-h100&nodes=2&ranks=8&seq=64K&heads=16&kv-heads=8&pass=forward&schedule=mesh&grid=4x2&set=nics.bandwidth%3D800+Gb/s");
  const [command, python] = await page.$$eval("#more pre", all => all.map(pre => pre.textContent));
  await (await page.createCDPSession()).send("Browser.setDownloadBehavior", {behavior: "deny"});
  const shown = JSON.parse(await page.evaluate(() => new Promise(saved => {
    const usual = URL.createObjectURL;
    URL.createObjectURL = blob => { blob.text().then(saved); return usual(blob); };
    [...document.querySelectorAll("#more button")].find(b => b.textContent === "Save JSON").click();
  })));
  const bin = path.dirname(process.env.PROGRAM);
  const run = (words, more) => execFileSync("bash", words, {encoding: "utf8", env: {...process.env, ...more}});
  const told = JSON.parse(run(["-c", `${command} --format json --quiet`], {PATH: `${bin}:${process.env.PATH}`}));
  assert.equal(told.schedule, shown.schedule);
  assert.ok(Math.abs(told.time_s / shown.time_s - 1) < 1e-9);
  const package_folder = path.join(bin, "../python");
  if (fs.existsSync(path.join(package_folder, "attnsim")) && fs.readdirSync(path.join(package_folder, "attnsim")).some(f => f.endsWith(".so"))) {
    const time = (told.time_s * 1e3).toPrecision(4);
    assert.match(run(["-c", `python3 -c '${python.replaceAll("'", `'"'"'`)}'`], {PYTHONPATH: package_folder}), new RegExp(time));
  }
  await close(page);
});

test("an error is one line, at its field", async () => {
  const page = await open("#ask=plan&cluster=pcie-8&seq=64K&heads=0");
  assert.equal(await text(page, "#error"), "heads: '0': expected a whole number of at least 1, such as 8, 128K or 1M");
  assert.ok(await page.$(".field.invalid #field-heads"));
  await set(page, "#field-heads", "8");
  await page.click("#ask");
  await answered(page, 1);
  assert.ok(await page.$("#error[hidden]"));
  await close(page);
});

test("where the simulator cannot go on another takes its place", async () => {
  const page = await open("#ask=predict&cluster=pcie-8&seq=64K&heads=13", 1300, () => {
    window.Worker = class extends Worker {
      postMessage(message) {
        if (message.request?.fields?.heads !== "13") return super.postMessage(message);
        setTimeout(() => this.onmessage({data: {id: message.id, failed: "no memory"}}));
      }
    };
  });
  assert.equal(await text(page, "#error"), "the simulator cannot go on: no memory");
  await set(page, "#field-heads", "16");
  await page.click("#ask");
  await answered(page, 1);
  await close(page);
});

test("a pasted matrix becomes the cluster; a mistake in its file is shown at its line", async () => {
  const page = await open(one);
  const matrix = fs.readFileSync(path.join(__dirname, "../formats/data/nvidia-smi/nvlink-pairs.txt"), "utf8");
  await set(page, "#own-pasted", matrix);
  await set(page, "#own-device", "a100-sxm4-80gb");
  await set(page, "#own-nic-bandwidth", "200 Gb/s");
  await page.$eval("#own-import", button => button.click());
  await answered(page, 2);
  assert.equal(await page.$eval("#cluster", select => select.value), "own.yaml");
  const yaml = await page.$eval("#own-yaml", area => area.value);
  assert.match(yaml, /^device: a100-sxm4-80gb$/m);
  await set(page, "#own-yaml", yaml.replace(/^device: .*$/m, "device: a1000"));
  await page.$eval("#own-use", button => button.click());
  await page.waitForSelector("#error:not([hidden])");
  assert.match(await text(page, "#error"), /^own\.yaml:\d+: device: 'a1000': expected /);
  assert.equal(await page.$eval("#own-yaml", area => area.value.slice(area.selectionStart, area.selectionEnd)), "device: a1000");
  await close(page);
});

test("what was measured on such devices stands beside, with its points", async () => {
  const page = await open("#ask=predict&cluster=dgx-h200&seq=64K&heads=16&schedule=ring");
  await page.waitForFunction(() => document.body.dataset.cluster);
  const cells = await page.$$eval("#trust table:nth-of-type(1)", tables => tables.slice(1).map(t => [...t.rows].map(r => [...r.cells].map(c => c.textContent))));
  assert.deepEqual(cells[0].find(row => row[0] === "schedules").slice(0, 2), ["schedules", "512"]);
  await page.$eval("#trust details:last-of-type", details => { details.open = true; });
  await page.waitForFunction(() => document.querySelector("#trust figure circle"), {timeout: 5000});
  await close(page);
});

test("two settings side by side, and exports", async () => {
  const page = await open(one);
  await page.click("#keep");
  await set(page, "#slider-seq", "3", "input");
  await answered(page, 2);
  assert.match(await text(page, "#kept .note"), /^seq: 64K, now 32K$/);
  const folder = fs.mkdtempSync(path.join(saved, "exports-"));
  const client = await page.createCDPSession();
  await client.send("Browser.setDownloadBehavior", {behavior: "allow", downloadPath: folder});
  for (const name of ["Save JSON", "Save CSV", "Save charts as SVG"]) {
    await page.evaluate(wanted => [...document.querySelectorAll("#more button")].find(b => b.textContent === wanted).click(), name);
  }
  const read = async name => {
    const file = path.join(folder, name);
    for (let tries = 0; !fs.existsSync(file); ++tries) {
      assert.ok(tries < 100, `${name} is not saved`);
      await new Promise(later => setTimeout(later, 100));
    }
    return fs.readFileSync(file, "utf8");
  };
  assert.equal(JSON.parse(await read("predict.json")).problem.seq, 32768);
  assert.match(await read("predict.csv"), /^schema,cluster,ranks,/);
  assert.match(await read("where-the-time-goes.svg"), /^<svg [^>]*xmlns="http:\/\/www\.w3\.org\/2000\/svg"/);
  await close(page);
});

test("a long plan is cancelled at once, and the next is answered", async () => {
  const page = await open(one);
  await page.evaluate(() => { location.hash = "#ask=plan&cluster=nd-h100-v5&nodes=32&seq=1M&heads=64"; });
  await page.waitForFunction(() => document.getElementById("progress").value > 0);
  await page.click("#cancel");
  await page.waitForFunction(() => document.getElementById("status").textContent === "Cancelled.");
  await page.evaluate(hash => { location.hash = hash; }, `${one}&batch=2`);
  await answered(page, 2);
  await close(page);
});

test("a pasted config.json is the model", async () => {
  const page = await open(one);
  await set(page, "#own-model", JSON.stringify({model_type: "llama", num_attention_heads: 24, num_key_value_heads: 8, hidden_size: 3072}));
  await page.click("#ask");
  await answered(page, 2);
  assert.match(await text(page, "#answer dd"), /24 heads, 8 K\/V heads of 128/);
  await close(page);
});

test("the map of grids has a cell for each grid that runs", async () => {
  const page = await open("#ask=grids&cluster=pcie-8&seq=64K&heads=16");
  assert.equal((await page.$$("#answer rect.mark")).length, 10);  // R x C divides 8
  await close(page);
});

/// Mean brightness of each of 16 x 12 parts of what is seen, 0 to 255.
async function brightness(page) {
  const shot = await page.screenshot({encoding: "base64"});
  const other = await browser.newPage();
  const parts = await other.evaluate(async data => {
    const image = new Image();
    image.src = `data:image/png;base64,${data}`;
    await image.decode();
    const context = Object.assign(document.createElement("canvas"), {width: 16, height: 12}).getContext("2d");
    context.imageSmoothingQuality = "high";
    context.drawImage(image, 0, 0, 16, 12);
    const {data: pixels} = context.getImageData(0, 0, 16, 12);
    return Array.from({length: 192}, (_, i) => Math.round((pixels[4 * i] + pixels[4 * i + 1] + pixels[4 * i + 2]) / 3));
  }, shot);
  await other.close();
  return parts;
}

// LOOKS=write writes looks.json and the picture of docs/page.md anew.
async function write_looks(seen) {
  fs.writeFileSync(path.join(__dirname, "looks.json"), `${JSON.stringify(seen)}\n`);
  const page = await open("");
  await page.screenshot({path: path.join(__dirname, "../../docs/page.png")});
  await close(page);
}

test("looks as before, but for fonts", async () => {
  const page = await open(small);
  await page.waitForFunction(() => document.body.dataset.cluster);
  const seen = await brightness(page);
  if (process.env.LOOKS === "write") await write_looks(seen);
  const off = JSON.parse(fs.readFileSync(path.join(__dirname, "looks.json"), "utf8")).map((value, i) => Math.abs(value - seen[i]));
  const mean = off.reduce((sum, value) => sum + value) / off.length;
  assert.ok(mean < 10 && Math.max(...off) < 120, `parts differ by ${mean.toFixed(1)} of 255, ${Math.max(...off)} at most`);
  await close(page);
});

for (const [name, width, scheme] of [["light", 1300, "light"], ["dark", 1300, "dark"], ["on a phone", 390, "light"]]) {
  test(`accessible: ${name}`, async () => {
    const page = await open(small, width);
    await page.emulateMediaFeatures([{name: "prefers-color-scheme", value: scheme}]);
    await page.waitForFunction(() => document.body.dataset.cluster);
    await page.$$eval("details", all => all.forEach(details => { details.open = true; }));
    await page.evaluate(fs.readFileSync(`${process.env.MODULES}/axe-core/axe.min.js`, "utf8"));
    const {violations} = await page.evaluate(() => axe.run(document, {resultTypes: ["violations"]}));
    const serious = violations.filter(v => ["serious", "critical"].includes(v.impact));
    assert.deepEqual(serious.map(v => `${v.id}: ${v.nodes.slice(0, 3).map(n => n.html.slice(0, 160)).join(" | ")}`), []);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(over <= 0, `${over} pixels too wide`);
    await close(page);
  });
}
