// The budget, which analysts see of themselves and the owner of everyone, and the owner's ledger, keys and log.

import { accuracy, accuracyInPercent, ask, count, download, find, fromNano, guarded, make, mark, priceProblem, session, table, toNano } from "./common.js";
import { bars, gauge, meter, smallBar } from "./drawing.js";

const SHOWN = 2000; // rows of the ledger that the picture of days is made from; the export has them all
const PRICES = ["0.1", "0.5", "1", "2", "4", "8"];

// Budget

function inSentence(name, balance) {
  const of = balance.limit === null ? "" : ` of ${balance.limit}`;
  const left = balance.left === null || balance.left === undefined || balance.limit === null ? "" : `, ${balance.left} left`;
  const own = balance.limit === null ? "; everyone's limit alone applies" : "";
  return `${name}: ${balance.unit} ${balance.spent}${of} spent in ${count(balance.answers, "answer")}${left}${own}`;
}

export async function showBudget() {
  const found = await ask("GET", "v1/budget");
  const accounts = found.all ? [["Everyone", found.all], ...Object.entries(found.analysts)] : [["You", found.yours]];
  find("meters").replaceChildren(...accounts.map(([name, one]) => meter(name, one, inSentence(name, one))));
  find("meaning").textContent = found.meaning ? `The limit means: ${found.meaning}.` : "";
  const whole = found.all ?? found.yours;
  find("held").textContent = found.all && found.all.held !== "0" ? `${whole.unit} ${found.all.held} of this is paid for answers that were never fetched; asking again with their request ids costs nothing.` : "";
  showLosses(found.losses);
  showAttackers(found);
  await Promise.all([showPrices(), session.me.role === "owner" ? showOverview() : null]);
}

// What all answers may have told: about one connection, about one person, and about the whole graph

let losses = null;

function showLosses(found) {
  losses = found ?? null;
  find("losses-part").hidden = losses === null;
  if (losses === null) return;
  find("losses-words").textContent = losses.in_words;
  showPersonLoss();
}

// The loss of a person with m connections: her account and one for each connection, and never more than everything
export function personLoss(found, connections) {
  const nano = (name) => toNano(found[name]);
  const m = BigInt(connections);
  const [accounts, all] = [(m + 1n) * nano("dearest_node") + nano("whole"), nano("everything")];
  return fromNano((accounts < all ? accounts : all) + m * nano("edge_level"));
}

// What it may become under the limits; what is left of the total may yet be spent on entries that hold for one edge
export function mostForPerson(found, connections) {
  const [m, whole, total] = [BigInt(connections), toNano(found.whole), toNano(found.limit_of_whole)];
  const later = total > whole ? total - whole : 0n;
  const accounts = (m + 1n) * toNano(found.limit_per_node ?? "0") + whole + m * later;
  const all = found.most_for_any_two_graphs; // two graphs that differ in one person are among any two
  return fromNano(all !== null && toNano(all) < accounts ? toNano(all) : accounts);
}

function showPersonLoss() {
  const written = find("connections").value.trim();
  const good = /^[1-9][0-9]{0,6}$/.test(written);
  mark(find("connections"), good ? "" : "Write a whole number from 1 on.");
  const row = (about, now, most) => [about, now ?? "no finite number", now === null || now === undefined ? "" : accuracyInPercent(Number(now)), most ?? "no limit in advance"];
  table("losses", ["about", "epsilon so far", "attacker right at most", "epsilon at the limits"], [
    row("one connection", losses.one_edge, losses.most_for_one_edge),
    ...(good ? [row(`a person with ${count(written, "connection")}`, personLoss(losses, written), mostForPerson(losses, written))] : []),
    row("any two graphs", losses.any_two_graphs, losses.most_for_any_two_graphs),
  ]);
}
find("connections").addEventListener("input", () => losses && showPersonLoss());

// The sketch that is paid once, and what it told; where there is none, how to find out what one would be worth

const PEOPLE = [10, 100]; // connections of a person

async function showSketch() {
  const { sketch } = await ask("GET", "v1/sketch");
  find("sketch-words").textContent = sketch ? sketch.in_words : "None is named in the vault file. “privcfs sketch --rehearse” says from public data alone what one would buy for everyone.";
  find("sketch").hidden = !sketch;
  if (!sketch) return;
  const row = (about, epsilon) => [about, epsilon, accuracyInPercent(Number(epsilon))];
  const person = (m) => row(`a person with ${count(m, "connection")}`, fromNano(BigInt(m) * toNano(sketch.one_edge)));
  table("sketch", ["the sketch alone, about", "epsilon", "attacker right at most"], [row("one connection", sketch.one_edge), ...PEOPLE.map(person), ["any two graphs", "no finite number", ""]]);
}

function showAttackers(found) {
  const whole = found.all ?? found.yours;
  const amounts = found.losses ? [found.losses.one_edge, found.losses.most_for_one_edge] : [whole.spent, whole.limit];
  const sums = [["So far", amounts[0]], ["At the limit", amounts[1]]].filter(([, amount]) => amount !== null);
  const about = `about one connection from all ${found.all ? "" : "your "}answers together`;
  const shown = whole.unit === "epsilon" ? sums.map(([when, amount]) => gauge(Number(amount), `${when} (epsilon ${amount})`, about)) : [];
  find("attackers").replaceChildren(...shown);
}

async function showPrices() {
  const quotes = await Promise.all(PRICES.map((price) => ask("GET", `v1/quote?epsilon=${price}`).catch(() => null)));
  const unit = quotes.find((one) => one)?.unit ?? "epsilon";
  table("prices", ["price (epsilon)", ...(unit === "epsilon" ? [] : [`cost (${unit})`]), "answers that fit", "attacker right at most"], PRICES.map((price, number) => {
    const one = quotes[number];
    const more = one && one.left !== null && toNano(one.cost) > 0n ? (toNano(one.left) / toNano(one.cost)).toString() : "–";
    return [price, ...(unit === "epsilon" ? [] : [one ? one.cost : "–"]), more, smallBar(2 * accuracy(Number(price)) - 1, accuracyInPercent(Number(price)))];
  }));
}

// How long the budget lasts at the pace of the last days, and what needs the owner's attention

async function showOverview() {
  const [found] = await Promise.all([ask("GET", "v1/overview"), showSketch()]);
  find("forecast").textContent = forecastInWords(found);
  find("alerts").replaceChildren(...found.alerts.map((one) => make("li", {}, one.in_words)));
  find("alerts-none").hidden = found.alerts.length > 0;
  find("owner-part").hidden = false;
}

export function forecastInWords({ unit, forecast }) {
  const { left, last_7_days: week, last_30_days: month } = forecast;
  if (Number(month.spent) === 0) return `Nothing was spent in the last 30 days; ${unit} ${left} is left.`;
  const until = (one) => (one.used_up ? `${left} that is left lasts until ${one.used_up}` : `${left} that is left lasts for more than a lifetime`);
  const pace = (one, days) => `In the last ${days} days ${unit} ${one.spent} was spent, about ${Number(Number(one.per_day).toPrecision(2))} a day: at this pace the ${until(one)}.`;
  return Number(week.spent) === 0 ? pace(month, 30) : `${pace(week, 7)} ${month.spent === week.spent ? "" : pace(month, 30)}`.trim();
}

// Ledger

const KINDS = { OPENED: "ledger opened", LIMITED: "limits changed", HELD: "paid", RELEASED: "answered" };

async function spentOnDays() {
  const head = await ask("GET", "v1/ledger/head");
  const text = await ask("GET", `v1/ledger?after=${Math.max(head.position - SHOWN, 0)}`);
  const days = new Map();
  for (const row of text.trim().split("\n").filter(Boolean).map((line) => JSON.parse(line))) {
    if (row.kind !== "HELD") continue;
    const { day } = JSON.parse(row.body);
    days.set(day, (days.get(day) ?? 0) + row.cost / 1e9);
  }
  return { days: [...days].slice(-30), among: head.position > SHOWN ? ` (newest ${SHOWN} rows)` : "" };
}

export async function showLedger() {
  const [{ days, among }, rows] = await Promise.all([spentOnDays(), ask("GET", "v1/ledger/newest?most=100")]);
  find("days").replaceChildren(make("h3", {}, `Spent on each day${among}`), bars(days));
  const asked = new Map(rows.filter((one) => one.kind === "HELD").map((one) => [`${one.analyst}\n${one.request_id}`, one]));
  table("rows", ["row", "day", "what", "analyst", "node", "cost", "request"], rows.map((row) => {
    const charge = asked.get(`${row.analyst}\n${row.request_id}`) ?? row;
    const what = [KINDS[row.kind] ?? row.kind, charge.question].filter(Boolean).join(": ");
    return [String(row.position), charge.day, what, row.analyst, charge.target_name, row.kind === "HELD" ? row.cost : "", row.request_id];
  }));
}

async function save(path, name, type) {
  const found = await ask("GET", path);
  download(name, typeof found === "string" ? found : JSON.stringify(found), type);
}

find("export").addEventListener("click", guarded(() => save("v1/ledger", "ledger.ndjson", "application/x-ndjson")));
find("head").addEventListener("click", guarded(() => save("v1/ledger/head", "head.json", "application/json")));

// Keys

export async function showKeys() {
  const found = await ask("GET", "v1/keys");
  table("key-rows", ["name", "role", "key", "ends", "cap", "requests a minute", "nodes", "state"], found.map((one) => {
    const ended = one.ends && Date.parse(one.ends) < Date.now();
    const end = make("button", { type: "button", className: "quiet", "aria-label": `Revoke key ${one.name} of ${one.analyst}`, onclick: guarded(() => revoke(one)) }, "Revoke");
    return [one.analyst, one.role, one.name, one.ends?.slice(0, 10) ?? "never", one.cap ?? "none", one.per_minute === null ? "any" : String(one.per_minute), nodesInWords(one.targets), one.revoked ? "revoked" : ended ? "ended" : end];
  }));
}

function nodesInWords(targets) {
  if (targets === null) return "all";
  const first = targets.slice(0, 3).join(", ");
  return targets.length > 3 ? `${first} and ${targets.length - 3} more` : first;
}

async function revoke(one) {
  if (!confirm(`Revoke key ${one.name} of ${one.analyst}? This cannot be undone.`)) return;
  await ask("DELETE", `v1/keys/${one.name}`);
  await showKeys();
}

function checkKey() {
  const person = find("key-role").value === "person";
  find("key-nodes").required = person;
  const cap = find("cap").value.trim();
  mark(find("cap"), cap ? priceProblem(cap) : "");
  find("make-key").disabled = Boolean(cap && priceProblem(cap));
}
find("key-role").addEventListener("change", checkKey);
find("cap").addEventListener("input", checkKey);

find("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  guarded(makeKey)();
});

async function makeKey() {
  const body = { analyst: find("analyst").value.trim(), days: Number(find("days-valid").value) };
  if (find("key-role").value !== "analyst") body.role = find("key-role").value;
  const nodes = find("key-nodes").value.split("\n").map((name) => name.trim()).filter(Boolean);
  if (nodes.length) body.targets = nodes;
  if (find("cap").value.trim()) body.cap = find("cap").value.trim();
  if (find("pace").value) body.per_minute = Number(find("pace").value);
  const made = await ask("POST", "v1/keys", body);
  find("fresh").textContent = `The key of ${made.analyst}, shown this once: ${made.secret}`;
  find("fresh").hidden = false;
  await showKeys();
}

// Log

let lines = [];

const isPaid = (one) => /^POST \/v1\/(releases|confirmations|selections|advice)/.test(one.action);
const LOG_FILTERS = {
  asked: (one) => isPaid(one),
  refused: (one) => one.status >= 400,
  keys: (one) => one.action.includes("/v1/keys"),
  changes: (one) => !one.action.startsWith("GET "),
  all: () => true,
};

function filterLog() {
  const wanted = find("log-text").value.trim().toLowerCase();
  const shown = lines.filter(LOG_FILTERS[find("log-kind").value]).filter((one) => `${one.analyst} ${one.action}`.toLowerCase().includes(wanted));
  table("log-rows", ["time", "who", "what", "status"], shown.map((one) => [one.time.replace("T", " ").slice(0, 19), one.analyst, one.action, String(one.status)]));
  find("log-count").textContent = `${shown.length} of ${count(lines.length, "line")}. Quotes and other free look-ups are not written down.`;
}

export async function showLog() {
  lines = await ask("GET", "v1/log?most=1000");
  filterLog();
  const found = await ask("GET", "v1/failures");
  const parts = [`${count(found.given_up, "evaluation")} given up for work`, `${count(found.failed, "evaluation")} failed otherwise`, `${count(found.late, "answer")} later than the public time`];
  find("failures").textContent = `${parts.join(", ")}. Answers whose evaluation failed were drawn from public scores.`;
  find("failures-latest").replaceChildren(...found.latest.slice(-5).reverse().map((words) => make("li", {}, words)));
}
find("log-kind").addEventListener("change", filterLog);
find("log-text").addEventListener("input", filterLog);
