// Asking about a node: first what is free, then what a price buys.

import { ask, delayed, describe, facts, featureInWords, find, fromNano, guarded, inPercent, latest, make, mark, pairInWords, priceProblem, say, toNano } from "./common.js";
import { chance, classBars, gauge } from "./drawing.js";
import { offerFeatures } from "./features.js";
import { nodeField } from "./node_field.js";
import { answerView, leftInWords } from "./answers.js";

let target = null; // the chosen node
let offer = null; // the very question that the button names; nothing else can be paid
let guess = null;
const started = latest();

// A question keeps its request id until it is answered or refused for good, over reloads too: asking again pays once.
const pending = {
  read: () => JSON.parse(sessionStorage.getItem("pending") ?? "null"),
  write: (question) => sessionStorage.setItem("pending", JSON.stringify(question)),
  forget: () => sessionStorage.removeItem("pending"),
};

const chooseNode = nodeField(find("target"), find("target-list"), (name) => {
  target = name;
  guess = null;
  find("free").hidden = name === null;
  find("ask-own").hidden = true;
  withdraw();
  if (name !== null) guarded(async () => { await showFree(name); await quote(); })();
});

export async function showAsk() {
  const unanswered = pending.read();
  if (unanswered && target === null) {
    find("epsilon").value = unanswered.epsilon;
    chooseNode(unanswered.target);
    say(`Your question about ${unanswered.target} at ${unanswered.epsilon} was not answered yet. It may be paid already: asking the same again pays once.`);
  }
  await quote();
}

// What costs nothing

async function showFree(name) {
  guarded(() => offerFeatures(find("ask-own"), name))();
  const path = encodeURIComponent(name);
  const [found, list] = await Promise.all([ask("GET", `v1/guess/${path}`), ask("GET", `v1/candidates/${path}?most=0`)]);
  if (target !== name) return;
  guess = found;
  find("guess").replaceChildren(
    make("p", { className: "words" }, describe(found)),
    found.confidence ? chance(found.confidence, "It flips the decision") : "",
    beliefs(found.believed) ?? "",
  );
  const pairs = (some) => some.map((ends) => pairInWords(ends, list.labels));
  find("candidates").replaceChildren(
    make("p", { className: "help" }, `${list.number.toLocaleString("en")} candidates, the same whatever the private connections are.`),
    ...chips("Connections that may be deleted", pairs(list.deletable)),
    ...chips("Connections that may be added", pairs(list.addable)),
    ...(list.changeable
      ? chips("Features that may be changed", list.changeable.map(featureInWords))
      : chips("Features that may be masked", list.maskable.map((one) => `feature ${one}`))),
  );
}

function beliefs(believed) {
  if (!believed?.before) return null;
  const parts = [classBars("Believed decision now", believed.before), classBars("Believed decision after this change", believed.after)];
  const note = make("p", { className: "help" }, "Believed from imagined graphs that public data make likely. The true prediction is private and is not shown.");
  return make("div", { className: "beliefs" }, make("div", { className: "columns" }, ...parts), note);
}

function chips(title, items) {
  const list = items.length ? items : ["none"];
  return [make("h4", {}, title), make("ul", { className: "chips" }, ...list.map((text) => make("li", {}, text)))];
}

// The price. What the button names is what is paid: any change of node or price withdraws the offer until it is quoted.

function withdraw() {
  offer = null;
  const problem = priceProblem(find("epsilon").value);
  mark(find("epsilon"), problem);
  find("pay").disabled = true;
  find("try").disabled = Boolean(problem) || target === null;
  find("pay").textContent = problem ? "Write a price first" : target === null ? "Choose a node first" : `Pay ${find("epsilon").value.trim()} and ask`;
  if (problem) {
    find("gauge").replaceChildren();
    find("before").replaceChildren();
  }
  return !problem;
}

async function quote() {
  const current = started();
  if (!withdraw()) return;
  const price = find("epsilon").value.trim();
  const asked = target;
  find("gauge").replaceChildren(gauge(Number(price), "What this answer may tell about one connection"));
  const about = asked === null ? "" : `&target=${encodeURIComponent(asked)}`;
  let found;
  try {
    found = await ask("GET", `v1/quote?epsilon=${encodeURIComponent(price)}${about}`);
  } catch (error) {
    if (current()) mark(find("epsilon"), error.message);
    return;
  }
  if (!current()) return;
  find("before").replaceChildren(...facts(quoted(found)));
  if (!found.fits) return mark(find("epsilon"), `This is more than what is left: ${leftInWords(found)}. Ask for less.`);
  if (asked === null) return;
  offer = { target: asked, epsilon: found.epsilon };
  const cost = found.unit === "epsilon" ? found.cost : `${found.unit} ${found.cost}`;
  find("pay").textContent = `Pay ${cost} and ask`;
  find("pay").disabled = false;
}

function quoted(found) {
  const rows = [["You pay", `${found.unit} ${found.cost}`], ["Left before", leftInWords(found)]];
  if (found.fits) rows.push(["Left after", fromNano(toNano(found.left) - toNano(found.cost))]);
  if (found.expected) {
    const more = Number(found.expected) > Number(found.guess) ? "" : ": paying adds nothing here";
    rows.push(["Likely to flip", `${inPercent(found.expected)} paid, ${inPercent(found.guess)} for nothing${more}`]);
  }
  return rows;
}

const quoteSoon = delayed(() => guarded(quote)());

find("slider").addEventListener("input", () => {
  find("epsilon").value = Number((10 ** Number(find("slider").value)).toPrecision(2)).toString();
  withdraw();
  quoteSoon();
});
find("epsilon").addEventListener("input", () => {
  started();
  if (withdraw()) find("slider").value = Math.log10(Number(find("epsilon").value));
  quoteSoon();
});

function question() {
  const before = pending.read();
  const same = before && before.target === offer.target && before.epsilon === offer.epsilon;
  const body = same ? before : { ...offer, request_id: crypto.randomUUID() };
  pending.write(body);
  return body;
}

find("ask-form").addEventListener("submit", guarded(async (event) => {
  event.preventDefault();
  if (offer === null) return;
  const body = question();
  find("pay").disabled = true;
  try {
    const release = await ask("POST", "v1/releases", body);
    pending.forget();
    say("");
    await present("Answer", release, true);
    await quote();
  } catch (error) {
    find("pay").disabled = offer === null;
    if (!error.final) throw new Error(`${error.message} Asking the same again pays once (request id ${body.request_id}).`);
    pending.forget();
    throw error;
  }
}));

find("try").addEventListener("click", guarded(async () => {
  const body = { target, epsilon: find("epsilon").value.trim() };
  const found = await ask("POST", "v1/dry-run", body);
  await present("An answer might look like this (public data only, not paid)", found, false);
}));

async function present(title, found, paid) {
  find("answer-title").textContent = title;
  find("answer-view").replaceChildren(await answerView(found, paid ? guess : null, paid));
  find("answer").hidden = false;
  find("answer-title").focus();
}
