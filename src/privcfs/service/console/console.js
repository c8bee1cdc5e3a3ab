"use strict";

// The console of one vault. It keeps the key in this tab, builds every element with textContent, and loads nothing from
// elsewhere.

const find = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
let key = sessionStorage.getItem("key");
let me = null;

function make(name, fields = {}, ...children) {
  const one = document.createElement(name);
  for (const [field, value] of Object.entries(fields)) {
    if (field in one) one[field] = value;
    else one.setAttribute(field, value);
  }
  one.append(...children);
  return one;
}

function draw(name, fields = {}, ...children) {
  const one = document.createElementNS(SVG, name);
  for (const [field, value] of Object.entries(fields)) one.setAttribute(field, value);
  one.append(...children);
  return one;
}

function say(text, kind = "") {
  const notice = find("notice");
  notice.className = `notice ${kind}`;
  notice.textContent = text;
  notice.hidden = !text;
}

async function ask(method, path, body) {
  const headers = { Authorization: `Bearer ${key}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new Error("The service cannot be reached. Nothing is lost.");
  }
  if (answer.status === 204) return null;
  const type = answer.headers.get("content-type") || "";
  const found = type.includes("ndjson") ? await answer.text() : await answer.json();
  if (!answer.ok) {
    if (answer.status === 401 && me) leave();
    const error = new Error(found.message || `The service answered ${answer.status}.`);
    error.final = answer.status >= 400 && answer.status < 500;
    throw error;
  }
  return found;
}

function table(id, heads, rows) {
  const body = rows.map((row) => make("tr", {}, ...row.map((cell) => make("td", {}, cell ?? ""))));
  const head = make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text)));
  find(id).replaceChildren(make("thead", {}, head), make("tbody", {}, ...body));
}

// Signing in and out

async function enter() {
  me = await ask("GET", "v1/me");
  sessionStorage.setItem("key", key);
  find("enter").hidden = true;
  find("who").hidden = false;
  find("name").textContent = `${me.analyst} (${me.role})`;
  const parts = [["ask", "Ask"], ["budget", "Budget"]];
  if (me.role === "owner") parts.push(["ledger", "Ledger"], ["keys", "Keys"], ["log", "Log"]);
  const tabs = parts.map(([id, text]) => make("button", { type: "button", role: "tab", id: `tab-${id}`, "aria-controls": id, onclick: () => show(id) }, text));
  find("tabs").replaceChildren(...tabs);
  find("tabs").hidden = false;
  show("ask");
}

function leave() {
  sessionStorage.removeItem("key");
  key = me = null;
  for (const one of document.querySelectorAll("[role=tabpanel]")) one.hidden = true;
  find("tabs").hidden = find("who").hidden = true;
  find("enter").hidden = false;
  find("secret").value = "";
  find("secret").focus();
}

const LOADERS = { ask: quote, budget: showBudget, ledger: showLedger, keys: showKeys, log: showLog };

async function show(id) {
  for (const one of document.querySelectorAll("[role=tabpanel]")) one.hidden = one.id !== id;
  for (const one of document.querySelectorAll("[role=tab]")) {
    const chosen = one.id === `tab-${id}`;
    one.setAttribute("aria-selected", chosen);
    one.tabIndex = chosen ? 0 : -1;
  }
  say("");
  try {
    await LOADERS[id]();
  } catch (error) {
    say(error.message, "bad");
  }
}

find("tabs").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const tabs = [...find("tabs").children];
  const next = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
  next.focus();
  next.click();
});

find("enter-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  key = find("secret").value.trim();
  say("");
  try {
    await enter();
  } catch (error) {
    key = null;
    say(error.message, "bad");
  }
});
find("leave").addEventListener("click", leave);

// Asking

const accuracy = (epsilon) => 1 / (1 + Math.exp(-epsilon));
const percent = (epsilon) => {
  const scale = epsilon < 8 ? 1e2 : 1e6;
  return `${Math.ceil(100 * scale * accuracy(epsilon)) / scale} %`;
};
const count = (number, what) => `${number} ${what}${Number(number) === 1 ? "" : "s"}`;

function gauge(epsilon, about = "an edge") {
  const share = 2 * accuracy(epsilon) - 1;
  const words = `Whoever wants to learn of ${about} is right at most ${percent(epsilon)} of the time (a coin: 50 %).`;
  const picture = draw("svg", { viewBox: "0 0 320 20", role: "img", "aria-label": words });
  picture.append(
    draw("rect", { class: "track", x: 1, y: 4, width: 318, height: 12, rx: 6 }),
    draw("rect", { class: share > 0.75 ? "fill high" : "fill", x: 1, y: 4, width: Math.max(318 * share, 1), height: 12, rx: 6 }),
  );
  return make("div", {}, picture, make("p", { className: "help" }, words));
}

const inPercent = (probability) => `${Math.round(100 * Number(probability))} %`;

async function quote() {
  const epsilon = Number(find("epsilon").value);
  if (!(epsilon > 0)) return;
  find("gauge").replaceChildren(gauge(epsilon));
  const target = find("target").value.trim();
  const about = target ? `&target=${encodeURIComponent(target)}` : "";
  const found = await ask("GET", `v1/quote?epsilon=${encodeURIComponent(find("epsilon").value.trim())}${about}`);
  const whose = found.limited_by === "you" ? "of your own limit" : "of everyone's limit";
  const facts = [["Cost", `${found.unit} ${found.cost}`], ["Left before", `${found.left} ${whose}`], ["Fits", found.fits ? "yes" : "no: ask for less"]];
  if (found.expected) facts.push(["Likely to flip", `${inPercent(found.expected)} paid, ${inPercent(found.guess)} for nothing`]);
  find("before").replaceChildren(...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
  find("pay").disabled = !found.fits || !find("target").value.trim();
  find("pay").textContent = `Pay ${found.cost} and ask`;
  find("try").disabled = !find("target").value.trim();
}

function chips(title, items) {
  const list = items.length ? items : ["none"];
  return [make("h4", {}, title), make("ul", { className: "chips" }, ...list.map((text) => make("li", {}, text)))];
}

async function candidates() {
  const target = find("target").value.trim();
  if (!target) return;
  const found = await ask("GET", `v1/candidates/${encodeURIComponent(target)}?most=0`);
  const pairs = (list) => list.map((ends) => inWords(ends, found.labels));
  find("candidates").replaceChildren(
    make("p", { className: "help" }, `${found.number.toLocaleString("en")} candidates, the same whatever the private edges are.`),
    ...chips("Pairs to delete", pairs(found.deletable)),
    ...chips("Pairs to add", pairs(found.addable)),
    ...chips("Features to mask", found.maskable.map((one) => `feature ${one}`)),
  );
}

let waiting = null;
function later(work) {
  clearTimeout(waiting);
  waiting = setTimeout(async () => {
    try {
      say("");
      await work();
    } catch (error) {
      find("pay").disabled = find("try").disabled = true;
      say(error.message, "bad");
    }
  }, 250);
}

find("slider").addEventListener("input", () => {
  find("epsilon").value = Number((10 ** Number(find("slider").value)).toPrecision(2)).toString();
  later(quote);
});
find("epsilon").addEventListener("input", () => {
  const epsilon = Number(find("epsilon").value);
  if (epsilon > 0) find("slider").value = Math.log10(epsilon);
  later(quote);
});
find("target").addEventListener("input", () => later(async () => { await candidates(); await quote(); }));

// A question keeps its request id until it is answered or refused for good: asking again never pays twice.

let pending = null;

function question() {
  const [target, epsilon] = [find("target").value.trim(), find("epsilon").value.trim()];
  if (!pending || pending.target !== target || pending.epsilon !== epsilon) pending = { target, epsilon, request_id: crypto.randomUUID() };
  return pending;
}

find("ask-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const body = question();
  find("pay").disabled = true;
  try {
    const release = await ask("POST", "v1/releases", body);
    pending = null;
    await present(release, body.target, release);
    await quote();
  } catch (error) {
    if (error.final) pending = null;
    say(pending ? `${error.message} Asking the same again pays once (request id ${body.request_id}).` : error.message, "bad");
    find("pay").disabled = false;
  }
});

find("try").addEventListener("click", async () => {
  const body = { target: find("target").value.trim(), epsilon: find("epsilon").value.trim() };
  try {
    const found = await ask("POST", "v1/dry-run", body);
    await present(found, body.target, null);
  } catch (error) {
    say(error.message, "bad");
  }
});

const nameOf = (node, labels) => labels?.[node] ?? String(node);
const inWords = ([one, other], labels) => `${nameOf(one, labels)} - ${nameOf(other, labels)}`;
const short = (name) => ([...name].length > 14 ? `${[...name].slice(0, 13).join("")}…` : name);

function describe({ intervention, labels }) {
  const parts = [
    ...intervention.delete.map((ends) => `delete ${inWords(ends, labels)}`),
    ...intervention.add.map((ends) => `add ${inWords(ends, labels)}`),
    ...intervention.mask.map((feature) => `mask feature ${feature}`),
  ];
  return parts.length ? parts.join(", ") : "no intervention";
}

async function present(found, target, release) {
  find("answer-title").textContent = release ? "Answer" : "An answer might look like this (public data only, not paid)";
  find("words").textContent = describe(found);
  find("sure").textContent = found.confidence ? `It flips the decision with probability ${inPercent(found.confidence)}, judged from public data alone. This is no guarantee.` : "";
  find("zero").textContent = "";
  find("picture").replaceChildren();
  find("promise").textContent = release ? release.guarantee.statement : "Drawn on the public snapshot. It says nothing about the private graph.";
  find("download").hidden = !release;
  if (release) find("download").href = URL.createObjectURL(new Blob([JSON.stringify(release, null, 2)], { type: "application/json" }));
  find("answer").hidden = false;
  find("answer-title").focus();
  try {
    await illustrate(found.intervention, target);
  } catch (error) {
    say(`The answer is here; its picture is not: ${error.message}`, "bad");
  }
}

async function illustrate(intervention, target) {
  const around = await ask("GET", `v1/neighbourhood/${encodeURIComponent(target)}`);
  find("picture").replaceChildren(neighbourhood(around, intervention, [...intervention.delete, ...intervention.add].flat()));
  const drawn = [["delete", "dashed: to delete"], ["add", "thick: to add"]].filter(([kind]) => intervention[kind].length);
  find("legend").textContent = `${["Public pairs of the node", ...drawn.map(([, words]) => words)].join("; ")}. Private pairs are never drawn.`;
  const guess = await ask("GET", `v1/guess/${encodeURIComponent(target)}`);
  const sure = guess.confidence ? ` It flips the decision with probability ${inPercent(guess.confidence)}.` : "";
  find("zero").textContent = `For nothing, public data alone suggest: ${describe(guess)}.${sure}`;
}

function neighbourhood(around, intervention, named) {
  const others = [...new Set([...named, ...around.neighbours])].filter((node) => node !== around.target).slice(0, 24);
  const place = new Map([[around.target, [200, 160]]]);
  others.forEach((node, number) => {
    const angle = (2 * Math.PI * number) / Math.max(others.length, 1) - Math.PI / 2;
    place.set(node, [200 + 150 * Math.cos(angle), 160 + 120 * Math.sin(angle)]);
  });
  const same = (list, one, other) => list.some(([a, b]) => (a === one && b === other) || (a === other && b === one));
  const words = `Public neighbourhood of ${nameOf(around.target, around.labels)} with ${others.length} other nodes`;
  const picture = draw("svg", { viewBox: "0 0 400 330", role: "img", "aria-label": words });
  const line = (one, other, kind) => {
    const [from, to] = [place.get(one), place.get(other)];
    if (from && to) picture.append(draw("line", { class: kind, x1: from[0], y1: from[1], x2: to[0], y2: to[1] }));
  };
  for (const [one, other] of around.pairs) if (!same(intervention.delete, one, other)) line(one, other, "edge");
  for (const [one, other] of intervention.delete) line(one, other, "gone");
  for (const [one, other] of intervention.add) line(one, other, "new");
  for (const [node, [x, y]] of place) {
    const self = node === around.target;
    const below = self || y > 165;
    const name = nameOf(node, around.labels);
    const text = draw("text", { x, y: below ? y + 24 : y - 13, "text-anchor": "middle" }, short(name));
    const dot = draw("circle", { class: self ? "dot self" : "dot", cx: x, cy: y, r: self ? 10 : 7 });
    picture.append(draw("g", {}, draw("title", {}, name), dot, text));
  }
  return picture;
}

// Budget

function meter(name, balance) {
  const limit = balance.limit === null ? null : Number(balance.limit);
  const share = limit ? Math.min(Number(balance.spent) / limit, 1) : 0;
  const [of, own] = limit === null ? ["", "; everyone's limit alone applies"] : [` of ${balance.limit}`, ""];
  const words = `${name}: ${balance.unit} ${balance.spent}${of} spent in ${count(balance.answers, "answer")}${own}`;
  const picture = draw("svg", { viewBox: "0 0 600 18", role: "img", "aria-label": words });
  picture.append(
    draw("rect", { class: "track", x: 1, y: 2, width: 598, height: 14, rx: 7 }),
    draw("rect", { class: share > 0.8 ? "fill high" : "fill", x: 1, y: 2, width: Math.max(598 * share, share ? 4 : 0), height: 14, rx: 7 }),
  );
  return make("div", { className: "meter" }, make("p", {}, words), picture);
}

async function showBudget() {
  const found = await ask("GET", "v1/budget");
  const meters = found.all ? [meter("Everyone", found.all), ...Object.entries(found.analysts).map(([name, one]) => meter(name, one))] : [meter("You", found.yours)];
  find("meters").replaceChildren(...meters);
  find("meaning").textContent = found.meaning ? `The limit means: ${found.meaning}.` : "";
  attackers(found);
  const prices = ["0.1", "0.5", "1", "2", "4", "8"];
  const quotes = await Promise.all(prices.map((price) => ask("GET", `v1/quote?epsilon=${price}`).catch(() => null)));
  table("prices", ["epsilon", "cost", "more answers", "attacker right at most"], prices.map((price, number) => {
    const one = quotes[number];
    const more = one && one.left !== null && Number(one.cost) > 0 ? Math.floor(Number(one.left) / Number(one.cost) + 1e-9) : "–";
    return [price, one ? `${one.unit} ${one.cost}` : "–", String(more), bar(2 * accuracy(Number(price)) - 1, percent(Number(price)))];
  }));
}

function bar(share, words) {
  const picture = draw("svg", { class: "bar", viewBox: "0 0 160 14", role: "img", "aria-label": words });
  picture.append(draw("rect", { class: share > 0.75 ? "fill high" : "fill", x: 0, y: 2, width: Math.max(100 * share, 1), height: 10 }));
  picture.append(draw("text", { x: 100 * share + 5, y: 12 }, words));
  return picture;
}

// How much all answers together may tell about one edge: so far, and when the limit is reached

function attackers(found) {
  const whole = found.all ?? found.yours;
  const about = [["So far", whole.spent], ["At the limit", whole.limit]].filter(([, amount]) => amount !== null);
  const shown = whole.unit === "epsilon" ? about.map(([when, amount]) => make("div", {}, make("p", {}, `${when} (epsilon ${amount})`), gauge(Number(amount), `an edge from all ${found.all ? "" : "your "}answers together`))) : [];
  find("attackers").replaceChildren(...shown);
  find("held").textContent = found.all && found.all.held !== "0" ? `${whole.unit} ${found.all.held} of this is paid for answers that were never fetched; asking again with their request ids costs nothing.` : "";
}

// The owner's tables

const SHOWN = 2000; // rows of the ledger that are drawn; the export has them all

async function showLedger() {
  const head = await ask("GET", "v1/ledger/head");
  const text = await ask("GET", `v1/ledger?after=${Math.max(head.position - SHOWN, 0)}`);
  const rows = text.trim().split("\n").filter(Boolean).map((line) => JSON.parse(line));
  const days = new Map();
  for (const row of rows.filter((one) => one.kind === "HELD")) {
    const day = JSON.parse(row.body).day;
    days.set(day, (days.get(day) ?? 0) + row.cost / 1e9);
  }
  const among = head.position > SHOWN ? ` (newest ${SHOWN} rows)` : "";
  find("days").replaceChildren(make("h3", {}, `Spent on each day${among}`), bars([...days].slice(-30)));
  table("rows", ["row", "kind", "analyst", "request", "cost", "digest"], rows.slice(-50).reverse().map((row) => [
    String(row.position), row.kind, row.analyst, row.request_id, row.cost ? String(row.cost / 1e9) : "", row.digest.slice(0, 12),
  ]));
}

async function save(path, name, type) {
  try {
    const found = await ask("GET", path);
    const content = typeof found === "string" ? found : JSON.stringify(found);
    const link = make("a", { download: name, href: URL.createObjectURL(new Blob([content], { type })) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  } catch (error) {
    say(error.message, "bad");
  }
}

find("export").addEventListener("click", () => save("v1/ledger", "ledger.ndjson", "application/x-ndjson"));
find("head").addEventListener("click", () => save("v1/ledger/head", "head.json", "application/json"));

function bars(days) {
  if (!days.length) return make("p", { className: "help" }, "Nothing is spent yet.");
  const most = Math.max(...days.map(([, spent]) => spent));
  const words = `Spent on each day: ${days.map(([day, spent]) => `${day} ${spent}`).join(", ")}`;
  const picture = draw("svg", { class: "chart", viewBox: "0 0 600 150", role: "img", "aria-label": words });
  const width = Math.min(600 / days.length, 60);
  days.forEach(([day, spent], number) => {
    const height = (100 * spent) / most;
    picture.append(
      draw("rect", { class: "fill", x: number * width + 4, y: 122 - height, width: width - 8, height }),
      draw("text", { x: number * width + width / 2, y: 116 - height, "text-anchor": "middle" }, Number(spent.toPrecision(3)).toString()),
      draw("text", { x: number * width + width / 2, y: 140, "text-anchor": "middle" }, day.slice(5)),
    );
  });
  return picture;
}

async function showKeys() {
  const found = await ask("GET", "v1/keys");
  table("key-rows", ["key", "role", "analyst", "ends", "may spend", "a minute", "targets", "state"], found.map((one) => {
    const end = make("button", { type: "button", className: "quiet", "aria-label": `Revoke key ${one.name} of ${one.analyst}`, onclick: () => revoke(one) }, "Revoke");
    return [one.name, one.role, one.analyst, one.ends?.slice(0, 10), one.cap ?? "", one.per_minute === null ? "" : String(one.per_minute), one.targets === null ? "any" : String(one.targets.length), one.revoked ? "revoked" : end];
  }));
}

async function revoke(one) {
  if (!confirm(`Revoke key ${one.name} of ${one.analyst}? This cannot be undone.`)) return;
  try {
    await ask("DELETE", `v1/keys/${one.name}`);
    await showKeys();
  } catch (error) {
    say(error.message, "bad");
  }
}

find("key-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const body = { analyst: find("analyst").value.trim(), days: Number(find("days-valid").value) };
  if (find("cap").value.trim()) body.cap = find("cap").value.trim();
  if (find("pace").value) body.per_minute = Number(find("pace").value);
  try {
    const made = await ask("POST", "v1/keys", body);
    find("fresh").textContent = `The key of ${made.analyst}, shown this once: ${made.secret}`;
    find("fresh").hidden = false;
    await showKeys();
  } catch (error) {
    say(error.message, "bad");
  }
});

async function showLog() {
  const found = await ask("GET", "v1/log");
  table("log-rows", ["time", "who", "what", "status"], found.map((one) => [one.time, one.analyst, one.action, String(one.status)]));
  await showFailures();
}

async function showFailures() {
  const found = await ask("GET", "v1/failures");
  const parts = [`${count(found.given_up, "evaluation")} given up for work`, `${count(found.failed, "evaluation")} failed otherwise`, `${count(found.late, "answer")} later than the public time`];
  find("failures").textContent = `${parts.join(", ")}. Answers whose evaluation failed were drawn from public scores.`;
  find("failures-latest").replaceChildren(...found.latest.slice(-5).reverse().map((words) => make("li", {}, words)));
}

if (key) enter().catch(leave);
