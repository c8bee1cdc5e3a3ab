// What all parts of the console share: elements, requests, words and prices. Every text is put into the page as text,
// never as markup, so that a node's name cannot become a script.

export const find = (id) => document.getElementById(id);

export function make(name, fields = {}, ...children) {
  const one = document.createElement(name);
  for (const [field, value] of Object.entries(fields)) {
    if (field in one) one[field] = value;
    else one.setAttribute(field, value);
  }
  one.append(...children.filter((child) => child !== null && child !== undefined));
  return one;
}

export function say(text, kind = "") {
  const notice = find("notice");
  notice.className = `notice ${kind}`;
  notice.textContent = text;
  notice.hidden = !text;
}

// Who is signed in. A key stays in this tab; without a key, a proxy in front of the service may say who asks.

export const session = { key: sessionStorage.getItem("key"), me: null, leave: () => {} };

export async function ask(method, path, body) {
  const headers = session.key ? { Authorization: `Bearer ${session.key}` } : {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new Error("The service cannot be reached. Nothing is lost.");
  }
  if (answer.status === 204) return null;
  const type = answer.headers.get("content-type") || "";
  const found = type.includes("ndjson") ? await answer.text() : await answer.json().catch(() => ({}));
  if (!answer.ok) {
    if (answer.status === 401 && session.me) session.leave();
    const error = new Error(found.message || `The service answered ${answer.status}.`);
    error.status = answer.status;
    error.final = answer.status >= 400 && answer.status < 500;
    throw error;
  }
  return found;
}

// Shows what goes wrong in an event handler where the user looks.
export const guarded = (work) => async (event) => {
  try {
    await work(event);
  } catch (error) {
    say(error.message, "bad");
  }
};

// The latest of several calls wins: an answer that comes after a newer question is dropped.
export function latest() {
  let newest = 0;
  return () => {
    newest += 1;
    const mine = newest;
    return () => mine === newest;
  };
}

export function delayed(work, milliseconds = 250) {
  let waiting = null;
  return (...words) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => work(...words), milliseconds);
  };
}

export function download(name, content, type = "application/json") {
  const link = make("a", { download: name, href: URL.createObjectURL(new Blob([content], { type })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// Numbers in words

export const count = (number, what) => `${number} ${what}${Number(number) === 1 ? "" : "s"}`;

export const percent = (number) => `${number}\u00a0%`; // no line ends between a number and its sign

export function inPercent(probability) {
  const share = 100 * Number(probability);
  if (share >= 99.5) return `more than ${percent(99)}`;
  if (share > 0 && share < 0.5) return `less than ${percent(1)}`;
  return percent(Math.round(share));
}

const LIKELY = [[0.9, "very likely"], [0.7, "likely"], [0.5, "more likely than not"], [0.3, "less likely than not"], [0.1, "unlikely"], [0, "very unlikely"]];
export const likelihood = (probability) => LIKELY.find(([least]) => Number(probability) >= least)[1];

// How often the best attack on one edge is right. Rounded up always, so that no number looks safer than it is.

export const accuracy = (epsilon) => 1 / (1 + Math.exp(-epsilon));

export function accuracyInPercent(epsilon) {
  const rest = 100 / (1 + Math.exp(epsilon)); // the percentage of the time at which the attack is wrong
  if (rest < 0.001) return percent(100);
  const scale = rest >= 1 ? 10 : 10 ** Math.ceil(-Math.log10(rest));
  return percent(Math.ceil((100 - rest) * scale - 1e-9) / scale);
}

// Amounts are decimals with at most nine places; they are added and multiplied exactly, in units of 1e-9.

const NANO = 1_000_000_000n;

export function toNano(text) {
  const [whole, rest = ""] = String(text).split(".");
  return BigInt(whole || "0") * NANO + BigInt(rest.padEnd(9, "0").slice(0, 9));
}

export function fromNano(amount) {
  const rest = (amount % NANO).toString().padStart(9, "0").replace(/0+$/, "");
  return `${amount / NANO}${rest ? `.${rest}` : ""}`;
}

// Prices

const DECIMAL = /^(\d{1,12}(\.\d{0,9})?|\.\d{1,9})$/;

export function priceProblem(text) {
  const written = text.trim();
  if (!written) return "Write a price, such as 0.5.";
  if (/^\d*,\d+$/.test(written)) return `Write a point and no comma: ${written.replace(",", ".")}`;
  if (/^[-−]/.test(written)) return "A price must be more than 0.";
  if (!DECIMAL.test(written)) return "Write a number such as 1 or 0.25, with nine decimal places at most.";
  if (Number(written) === 0) return "A price must be more than 0.";
  if (Number(written) > 64) return "A price can be 64 at most.";
  return "";
}

// Shows the problem of a field beside it, or none.
export function mark(field, problem) {
  const place = find(`${field.id}-problem`);
  place.textContent = problem;
  place.hidden = !problem;
  field.setAttribute("aria-invalid", problem ? "true" : "false");
}

// Changes in words

export const nameOf = (node, labels) => labels?.[node] ?? String(node);
export const pairInWords = ([one, other], labels) => `${nameOf(one, labels)} - ${nameOf(other, labels)}`;

export function featureInWords({ feature, from, to, unit }) {
  const value = unit ? `${to} ${unit}` : to;
  return from ? `${feature}: ${from} -> ${value}` : `set ${feature} to ${value}`;
}

export function describe({ intervention, labels }) {
  const parts = [
    ...intervention.delete.map((ends) => `delete ${pairInWords(ends, labels)}`),
    ...intervention.add.map((ends) => `add ${pairInWords(ends, labels)}`),
    ...intervention.mask.map((feature) => `mask feature ${feature}`),
    ...(intervention.change ?? []).map(featureInWords),
  ];
  return parts.length ? parts.join(", ") : "no intervention";
}

// Tables that become cards on a phone: each cell knows the name of its column.

export function table(id, heads, rows) {
  const cells = (row) => row.map((cell, number) => make("td", { "data-name": heads[number] }, cell ?? ""));
  const head = make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text)));
  find(id).replaceChildren(make("thead", {}, head), make("tbody", {}, ...rows.map((row) => make("tr", {}, ...cells(row)))));
}

export const facts = (pairs) => pairs.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]);
