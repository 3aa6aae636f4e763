"use strict";
// The page of a live drive. It asks for a snapshot each second, and draws it. The token comes from the fragment of the
// address and is sent in a header.
const token = location.hash.slice(1);
const headers = { Authorization: `Bearer ${token}` };
const byId = (id) => document.getElementById(id);
const CAUSES = { host: ["host", "slate"], sync: ["cache sync", "brown"], gc: ["GC", "orange"], wear: ["wear levelling", "violet"], refresh: ["refresh", "teal"], reclaim: ["read reclaim", "rose"], fold: ["folding", "blue"], mapping: ["mapping table", "green"], flush: ["emergency flush", "red"] };
const OWN = { link: "link to the host", controller: "controller", dram: "DRAM of the write cache", transfer: "commands and transfers", bus: "wait for the channel", sense: "own senses", decode: "own decoding", decoder: "wait for a decoder", retry: "further tries of reads", program: "own programs", units: "own units before, on the same die", suspend: "suspension of a program or erase", gather: "wait for other requests", timer: "wait for a time of the drive", kept: "die kept for other work", other: "not observed" };
const KINDS = { read: "reads", program: "programs", erase: "erases", copyback: "copybacks" };
const DIES = { idle: "grid", read: "blue", program: "rose", erase: "orange", suspended: "violet" };
let range = "minute";
let shown = null;
let chosen = null;

const words = (part) => {
  if (part === null) return "earlier stretches, not listed";
  if (OWN[part]) return OWN[part];
  const [kind, cause] = part.split("_");
  return `${KINDS[kind] ?? kind} for ${CAUSES[cause]?.[0] ?? cause}`;
};
const colour = (name) => `var(--${name})`;
const number = (value, digits = 3) => value === 0 ? "0" : Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(digits)));
const count = (value) => Math.round(value).toLocaleString("en");
const micros = (us) => us >= 1e6 ? `${number(us / 1e6)} s` : us >= 1e3 ? `${number(us / 1e3)} ms` : `${number(us)} µs`;
const bytes = (value) => value >= 2 ** 30 ? `${number(value / 2 ** 30)} GiB` : value >= 2 ** 20 ? `${number(value / 2 ** 20)} MiB` : `${number(value / 1024)} KiB`;

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") element.addEventListener("click", value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}
function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
function legend(entries) {
  const swatch = (paint) => draw("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" }, draw("rect", { width: 10, height: 10, rx: 2, fill: colour(paint) }));
  return make("ul", { class: "legend" }, ...entries.map(([name, paint]) => make("li", {}, swatch(paint), name)));
}
function table(heads, rows, label) {
  const cell = (tag) => (text, at) => make(tag, at ? { class: "n" } : {}, text);
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${label}: table` },
    make("table", {}, make("thead", {}, make("tr", {}, ...heads.map(cell("th")))), make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map(cell("td")))))));
}
function folded(id, heads, rows, label, title = "Values") {
  const before = byId(id)?.querySelector("details");
  const details = make("details", {}, make("summary", {}, title), table(heads, rows, label));
  details.open = before?.open ?? false;
  return details;
}
function put(id, ...children) {
  // What has the focus stays, so that a keyboard is not thrown out each second.
  if (byId(id).contains(document.activeElement) && document.activeElement !== byId(id)) return;
  byId(id).replaceChildren(...children);
}

// Lines over points, or stacked areas. `of` is a list of [name, colour, values, style].
function chart(id, label, of, { log = false, format = number, stacked = false } = {}) {
  const points = shown[range].points;
  const [width, height, left, bottom] = [600, 200, 62, 20];
  const all = of.flatMap((one) => one[2]).filter((value) => value > 0);
  const sums = points.map((_, at) => of.reduce((sum, one) => sum + (one[2][at] || 0), 0));
  const top = Math.max(...(stacked ? sums : all), log ? 10 : 1);
  const low = log ? Math.max(Math.min(...all, top / 10), 1e-3) : 0;
  const y = (value) => {
    const share = log ? Math.log(Math.max(value, low) / low) / Math.log(top / low || 10) : value / top;
    return height - bottom - share * (height - bottom - 12);
  };
  const x = (at) => left + (points.length > 1 ? at / (points.length - 1) : 0.5) * (width - left - 6);
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${label} over time, ${range === "minute" ? "last minute" : "last hour"}` });
  const ticks = log ? [low, Math.sqrt(low * top), top] : [0, top / 2, top];
  for (const tick of ticks) svg.append(draw("line", { x1: left, x2: width, y1: y(tick), y2: y(tick), class: "grid" }), draw("text", { x: left - 5, y: y(tick) + 4, "text-anchor": "end" }, format(tick)));
  const unit = range === "minute" ? "s" : "min";
  const span = points.length ? shown.at_s - points[0].at_s : 0;
  svg.append(draw("text", { x: left, y: height - 4 }, `-${number(unit === "s" ? span : span / 60, 2)} ${unit}`), draw("text", { x: width, y: height - 4, "text-anchor": "end" }, "now"));
  const base = points.map(() => 0);
  for (const [, paint, values, style] of of) {
    if (stacked) {
      const above = values.map((value, at) => base[at] + (value || 0));
      const line = above.map((value, at) => `${x(at)},${y(value)}`).concat(base.map((value, at) => `${x(at)},${y(value)}`).reverse());
      svg.append(draw("polygon", { points: line.join(" "), fill: colour(paint) }));
      above.forEach((value, at) => { base[at] = value; });
    } else {
      let path = "", is_down = false;
      values.forEach((value, at) => {
        const has = log ? value > 0 : Number.isFinite(value);
        if (has) path += `${is_down ? "L" : "M"}${x(at)} ${y(value)}h0.01`;
        is_down = has;
      });
      svg.append(draw("path", { d: path, fill: "none", stroke: colour(paint), "stroke-width": 2, "stroke-linecap": "round", ...(style ? { "stroke-dasharray": style } : {}) }));
    }
  }
  const heads = ["time", ...of.map((one) => one[0])];
  const rows = points.map((point, at) => [`${number(point.at_s - shown.at_s)} s`, ...of.map((one) => format(one[2][at] || 0))]).reverse();
  put(id, svg, legend(of.map((one) => [one[0], one[1]])), folded(id, heads, rows, `${label} over time`));
}

// Horizontal bars: [name, value, colour, text].
function bars(id, label, rows) {
  const top = Math.max(...rows.map((row) => row[1]), 1e-12);
  const svg = draw("svg", { class: "bars", viewBox: `0 0 600 ${Math.max(rows.length, 1) * 22}`, role: "img", "aria-label": `${label}: ${rows.map((row) => `${row[0]} ${row[3]}`).join(", ") || "nothing"}` });
  rows.forEach(([name, value, paint, text], at) => svg.append(
    draw("text", { x: 0, y: at * 22 + 15 }, name),
    draw("rect", { x: 240, y: at * 22 + 4, width: Math.max(1, 250 * value / top), height: 14, rx: 2, fill: colour(paint) }),
    draw("text", { x: 246 + 250 * value / top, y: at * 22 + 15 }, text)));
  return svg;
}
const painted = (part) => CAUSES[part.split("_")[1]]?.[1] ?? "blue";

async function ask(path, method = "GET") {
  const answer = await fetch(path, { method, headers, cache: "no-store" });
  const value = await answer.json();
  if (!answer.ok) throw new Error(value.error);
  return value;
}
function say(text) {
  if (byId("said").textContent !== text) byId("said").textContent = text;
}

async function explain(id) {
  chosen = id;
  let of;
  try {
    of = await ask(`explained/${id}`);
  } catch (error) {
    say(error.message);
    return;
  }
  const total = of.latency_ns;
  const share = (ns) => `${micros(ns / 1e3)} (${number(100 * ns / total)} %)`;
  const parts = Object.entries(of.parts_ns);
  const where = (step) => step.die === null ? "" : `die ${step.die}${step.part?.startsWith("erase") ? "" : `, LPN ${step.lpn}`}`;
  const steps = of.steps.map((step) => [micros(step.from_ns / 1e3), micros((step.to_ns - step.from_ns) / 1e3), words(step.part), where(step)]);
  byId("explained").replaceChildren(
    make("p", { id: "of" }, `Request ${count(of.request)}, a ${of.op} of ${bytes(of.length)} at ${count(of.offset)}, took ${micros(total / 1e3)}. Most of it: ${parts.length ? `${words(parts[0][0])}, ${share(parts[0][1])}` : "nothing"}.`),
    bars("", "What the request waited for", parts.map(([part, ns]) => [words(part), ns, painted(part), share(ns)])),
    folded("explained", ["from", "took", "waited for", "where"], steps, "Steps of the request", `Step by step: ${steps.length}`));
  byId("h-explained").focus({ preventScroll: false });
  spikes();
}
function spikes() {
  if (byId("spikes").contains(document.activeElement)) {
    for (const button of byId("spikes").querySelectorAll("button")) button.classList.toggle("chosen", Number(button.dataset.id) === chosen);
    return;
  }
  const points = shown[range].points;
  const top = Math.max(...points.map((point) => point.slowest?.us ?? 0), 1);
  const missing = Array.from({ length: Math.max(0, 60 - points.length) }, () => make("span"));
  put("spikes", ...missing, ...points.map((point) => {
    if (!point.slowest) return make("span");
    const { id, us } = point.slowest;
    const text = `Slowest request, ${number(shown.at_s - point.at_s)} s ago: ${micros(us)}`;
    const button = make("button", { type: "button", "aria-label": text, title: text, "data-id": id, ...(id === chosen ? { class: "chosen" } : {}), onclick: () => explain(id) });
    button.style.height = `${Math.max(8, 100 * us / top)}%`;
    return button;
  }));
}

function tiles() {
  const { stat, state } = shown;
  const minute = shown.minute;
  const rate = (of) => minute.took_s > 0 ? (minute.read[of] + minute.write[of]) / minute.took_s : 0;
  const values = [
    ["reads", count(stat.host.read.count), "host.read.count"], ["writes", count(stat.host.write.count), "host.write.count"],
    ["read p50", micros(stat.latency_us.read.p50), "latency_us.read.p50"], ["read p99", micros(stat.latency_us.read.p99), "latency_us.read.p99"],
    ["write p50", micros(stat.latency_us.write.p50), "latency_us.write.p50"], ["write p99", micros(stat.latency_us.write.p99), "latency_us.write.p99"],
    ["write amplification", stat.waf === null ? "-" : number(stat.waf), "waf"], ["outstanding", count(stat.outstanding), "outstanding"],
    ["requests/s, last minute", number(rate("count")), ""], ["MB/s, last minute", number(rate("bytes") / 1e6), ""],
    ["simulated IOPS", number(stat.iops), "iops"], ["mean depth", number(stat.depth), "depth"],
    ["simulated", `${number(stat.simulated_s, 6)} s`, "simulated_s"], ["free superblocks", count(state.superblocks.free), ""],
  ];
  const raw = (path) => path.split(".").reduce((value, key) => value?.[key], stat);
  put("tiles", ...values.map(([name, text, path]) => make("div", {}, make("dt", {}, name), make("dd", path ? { "data-path": path, "data-value": String(raw(path)) } : {}, text))));
}

function dies() {
  const across = Math.min(32, Math.max(8, Math.ceil(Math.sqrt(shown.dies.length * 2))));
  const down = Math.ceil(shown.dies.length / across);
  const tally = shown.die_states.map((name, state) => [name, shown.dies.filter((die) => die === state).length]);
  const svg = draw("svg", { viewBox: `0 0 ${across * 20} ${down * 20}`, role: "img", "aria-label": `${shown.dies.length} dies: ${tally.map(([name, of]) => `${of} ${name}`).join(", ")}` });
  shown.dies.forEach((state, die) => {
    const name = shown.die_states[state];
    svg.append(draw("rect", { x: (die % across) * 20 + 1, y: Math.floor(die / across) * 20 + 1, width: 18, height: 18, rx: 3, fill: colour(DIES[name]) }, draw("title", {}, `die ${die}: ${name}`)));
  });
  put("dies", svg, legend(tally.map(([name, of]) => [`${name} ${of}`, DIES[name]])));
}

function rest() {
  const { stat, state, smart } = shown;
  const names = [...Array(10).keys()].map((tenth) => `${tenth * 10} to ${tenth * 10 + 10} %`);
  const kinds = state.superblocks;
  put("blocks", bars("", "Closed superblocks by valid share", shown.shares.map((of, tenth) => [names[tenth], of, "teal", count(of)])), make("p", { class: "hint" }, `${count(kinds.free)} free, ${count(kinds.open)} open, ${count(kinds.closed)} closed, ${count(kinds.retired)} retired`));
  const fields = [];
  for (const [key, name] of [["buffer", "Write buffer"], ["cache", "Write cache"], ["dirty", "Saved by the capacitor"]]) {
    const of = state[key];
    if (!of) continue;
    const text = `${name}: ${count(of.used)} of ${count(of.budget)} units of the budget, size ${count(of.size)}`;
    const meter = make("meter", { min: 0, max: Math.max(of.budget, of.used, 1), value: of.used, "aria-label": text });
    fields.push(make("p", {}, text), meter);
  }
  const capacitor = state.capacitor;
  if (capacitor) fields.push(make("p", {}, `Capacitor ${capacitor.stage}: ${number(1e3 * capacitor.energy_j)} of ${number(1e3 * capacitor.energy_j_full)} mJ, ${number(100 * capacitor.loss_share)} % of the capacitance lost, saves ${count(capacitor.saves_units)} units`));
  put("buffers", ...(fields.length ? fields : [make("p", { class: "hint" }, "This drive has no write buffer, no write cache and no capacitor.")]));
  const levels = state.levels.map((of, level) => [`level ${level}`, of, "blue", count(of)]).filter((row) => row[1]);
  put("levels", levels.length ? bars("", "Page reads by read level", levels) : make("p", { class: "hint" }, "All pages decode at the first try, or this drive has no read levels."), make("p", { class: "hint" }, `${count(state.retries)} further tries, ${count(state.uncorrectable)} uncorrectable`));
  const cycles = state.pe_cycles;
  put("wear", table(["what", "now"], [["lanes with a background job", count(state.jobs)], ["victims of GC", count(state.victims)], ["units that waited for room", count(state.waiting_writes)], ["suspended programs, erases", `${count(state.suspensions.programs)}, ${count(state.suspensions.erases)}`], ["P/E cycles, least", count(cycles.min)], ["P/E cycles, mean", number(cycles.mean)], ["P/E cycles, most", count(cycles.max)], ["endurance", count(cycles.endurance)], ["power losses", count(stat.power_losses)], ["lost units: covered, acknowledged, in flight", `${count(state.losses.covered)}, ${count(state.losses.acknowledged)}, ${count(state.losses.in_flight)}`]], "Garbage collection and wear"));
  const placement = stat.placement ?? null;
  byId("s-handles").hidden = placement === null;
  if (placement !== null) {
    const write = (id) => stat.by_placement?.[id]?.latency_us.write ?? (stat.by_placement || id !== "0" ? null : stat.latency_us.write);
    const handles = Object.entries(placement.handles).map(([id, of]) => [placement.handles[32768] ? `${id}: group ${of.group}, handle ${of.handle}` : id, of.isolation, bytes(of.host_bytes), bytes(of.copied_bytes), of.waf === null ? "-" : number(of.waf), count(of.erases), `${number(100 * of.copied_share)} %`, write(id) ? micros(write(id).p99) : "-"]);
    put("handles", table(["placement", "isolation", "written", "copied", "WAF", "erases", "share of copies", "write p99"], handles, "Placement handles"), make("p", { class: "hint" }, `MBMW / HBMW ${placement.waf === null ? "-" : number(placement.waf)}; ${count(placement.events.media_reallocated)} moves between reclaim units, ${count(placement.events.invalid_identifier)} writes with an unknown identifier`));
  }
  const own = placement === null ? [] : ["placement"];
  put("clients", shown.clients.length ? table(["connection", ...own, "reads", "writes", "others", "read", "written", "outstanding"], shown.clients.map((of) => [String(of.number), ...own.map((key) => String(of[key])), count(of.reads), count(of.writes), count(of.others), bytes(of.bytes_read), bytes(of.bytes_written), count(of.outstanding)]), "Connections") : make("p", { class: "hint" }, "No client is connected."));
  const rows = [];
  const flat = (value, path) => {
    if (value !== null && typeof value === "object") for (const [key, inner] of Object.entries(value)) flat(inner, path ? `${path}.${key}` : key);
    else rows.push([path, String(value)]);
  };
  flat(smart, "");
  put("smart", folded("smart", ["attribute", "value"], rows, "SMART"));
  put("events", ...(shown.events.length ? shown.events.map((event) => {
    const item = make("li", { class: event.kind }, make("time", {}, `${number(event.at_s, 6)} s`), event.text);
    if (event.explained !== null) item.append(make("button", { type: "button", onclick: () => explain(event.explained), "aria-label": `Explain: ${event.text}` }, "explain"));
    return item;
  }) : [make("li", {}, "Nothing has happened yet.")]));
}

function show() {
  const points = shown[range].points;
  const rate = (of, key) => points.map((point) => point.took_s > 0 ? point[of][key] / point.took_s : 0);
  tiles();
  chart("throughput", "Requests a second", [["reads/s", "blue", rate("read", "count")], ["writes/s", "rose", rate("write", "count")]]);
  const latency = (of, key) => points.map((point) => point[of].count ? point[of][key] : 0);
  chart("latency", "Latency", [["read p50", "blue", latency("read", "p50")], ["read p99", "teal", latency("read", "p99")], ["read p99.9", "violet", latency("read", "p999"), "4 3"], ["write p50", "rose", latency("write", "p50")], ["write p99", "orange", latency("write", "p99")], ["write p99.9", "brown", latency("write", "p999"), "4 3"]], { log: true, format: micros });
  spikes();
  const slc = shown.state.slc;
  byId("s-slc").hidden = !slc;
  if (slc) {
    const written = (mode) => points.map((point) => point.slc && point.took_s > 0 ? point.slc[mode] * shown.state.unit_bytes / 1e6 / point.took_s : 0);
    chart("slc-written", "Host writes by mode, MB/s", [["SLC mode", "blue", written("cached")], ["without SLC mode", "orange", written("direct")]], { stacked: true });
    chart("slc-blocks", "Superblocks in SLC mode", [["superblocks in SLC mode", "teal", points.map((point) => point.slc?.blocks ?? 0)]], { format: count });
    const text = `${count(slc.blocks)} superblocks in SLC mode, further ones open up to ${count(slc.blocks_max)}`;
    put("slc-now", make("p", {}, text), make("meter", { min: 0, max: Math.max(slc.blocks, slc.blocks_max, 1), value: slc.blocks, "aria-label": text }), make("p", { class: "hint" }, `Units folded in idle time ${count(slc.folded.idle)}, because the cache was full ${count(slc.folded.full)}, for space ${count(slc.folded.space)}`));
  }
  chart("waf", "Pages programmed by cause", Object.entries(CAUSES).filter(([cause]) => points.some((point) => point.programmed[cause])).map(([cause, [name, paint]]) => [name, paint, points.map((point) => point.programmed[cause] ?? 0)]), { stacked: true });
  const parts = Object.entries(shown[range].parts_ns).sort((one, other) => other[1] - one[1]);
  const total = parts.reduce((sum, part) => sum + part[1], 0);
  const of = shown[range].read.count + shown[range].write.count;
  const some = shown[range].explained < of ? [make("p", { class: "hint" }, `Of ${number(100 * shown[range].explained / of)} % of the reads and writes: above 20,000 mapping units a second, those of a fifth of the time are explained.`)] : [];
  put("parts", ...(parts.length ? [bars("", "What the requests waited for", parts.slice(0, 12).map(([part, ns]) => [words(part), ns, painted(part), `${number(100 * ns / total)} %`])), ...some] : [make("p", { class: "hint" }, shown.state.parts_ns === null ? "This server does not explain requests (--no-explain)." : "No request took time.")]));
  dies();
  rest();
  const is_on = shown.stat.power === "on";
  byId("power").textContent = `power ${shown.stat.power}`;
  byId("power").className = `badge ${shown.stat.power}`;
  byId("cut").disabled = !is_on;
  byId("restore").disabled = is_on;
  byId("detect").disabled = !is_on || !shown.state.capacitor;
  byId("foot").textContent = `nandlab ${shown.version}, speed ${shown.stat.speed}; the server runs for ${number(shown.at_s, 6)} s`;
}

let is_lost = false;
async function look() {
  try {
    shown = await ask("snapshot");
    if (is_lost) say("");
    is_lost = false;
    show();
  } catch (error) {
    is_lost = true;
    say(error instanceof TypeError ? "The server does not answer: it has ended, or cannot be reached." : error.message);
  }
}
for (const order of ["cut", "restore", "detect"]) {
  byId(order).addEventListener("click", async () => {
    try {
      const { ok } = await ask(order, "POST");
      const lost = ["covered", "acknowledged", "in_flight"].filter((kind) => ok?.[kind]).map((kind) => `${ok[kind].length} ${kind.replace("_", " ")}`);
      say({ cut: "Power is off.", restore: `Power is back. Lost units: ${lost.join(", ") || "none"}.`, detect: `A detection has begun: the capacitor is ${ok?.stage}.` }[order]);
    } catch (error) {
      say(error.message);
    }
    await look();
  });
}
for (const name of ["minute", "hour"]) {
  byId(name).addEventListener("click", () => {
    range = name;
    for (const other of ["minute", "hour"]) byId(other).setAttribute("aria-pressed", String(other === name));
    if (shown) show();
  });
}
async function go() {
  await look();
  setTimeout(go, 1000);
}
if (token) go();
else say("The token is missing: open the address that the server has printed, with the part after #.");
