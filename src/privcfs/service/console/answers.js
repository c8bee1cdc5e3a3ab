// Answers that were paid for: one answer in full, what confirms it, and the list of all that are mine.

import { accuracy, ask, describe, download, find, guarded, inPercent, likelihood, make, priceProblem, say } from "./common.js";
import { chance, neighbourhood } from "./drawing.js";

const WHOSE = { you: "of your own limit", everyone: "of everyone's limit", node: "of this node's account" };
export const leftInWords = (found) => `${found.left} ${WHOSE[found.limited_by] ?? ""}`.trim();

// What was paid and what is left now, in a sentence
async function paidInWords(found) {
  if (found.in_words && found.left) return found.in_words;
  const paid = `You paid epsilon ${found.paid ?? found.epsilon ?? found.guarantee?.epsilon}`;
  const now = await ask("GET", "v1/budget").catch(() => null);
  return now ? `${paid}; ${leftInWords(now)} is left.` : `${paid}.`;
}

// The certificate alone, without what the service says beside it
function certificateOf({ paid, left, limited_by, in_words, ...certificate }) {
  return JSON.stringify(certificate, null, 2);
}

export async function answerView(found, guess, paid) {
  const view = make("div", { className: "columns answer" });
  const zero = guess ? `For nothing, public data alone suggest: ${describe(guess)}.${guess.confidence ? ` It flips the decision with probability ${inPercent(guess.confidence)}.` : ""}` : "";
  const words = make("div", {},
    make("p", { className: "words" }, describe(found)),
    paid ? make("p", { className: "paid" }, await paidInWords(found)) : null,
    found.confidence ? chance(found.confidence, "It flips the decision") : null,
    found.confidence ? make("p", { className: "help" }, "Judged from public data alone. This is no guarantee.") : null,
    zero ? make("p", { className: "help zero" }, zero) : null,
    make("p", { className: "help promise" }, paid ? found.guarantee.statement : "Drawn on the public snapshot. It says nothing about the private connections."),
    paid ? make("button", { type: "button", className: "quiet", onclick: () => download("release.json", certificateOf(found)) }, "Download the certificate") : null,
    paid ? confirmation(found) : null,
  );
  const figure = make("figure", {});
  view.append(words, figure);
  try {
    const around = await ask("GET", `v1/neighbourhood/${found.target}?by_number=true`);
    const { picture, legend } = neighbourhood({ ...around, labels: { ...around.labels, ...found.labels } }, found.intervention);
    figure.replaceChildren(picture, make("figcaption", {}, ...legend));
  } catch (error) {
    figure.replaceChildren(make("p", { className: "help" }, `The answer is here; its picture is not: ${error.message}`));
  }
  return view;
}

// A noisy yes or no about an answer, at a price of its own

let forms = 0;

function confirmation(found) {
  forms += 1;
  const id = `confirm-${forms}`;
  const field = make("input", { id, value: "1", inputMode: "decimal", maxLength: 22, autocomplete: "off", "aria-describedby": `${id}-problem` });
  const problem = make("p", { id: `${id}-problem`, className: "problem", role: "alert", hidden: true });
  const button = make("button", { type: "submit" });
  const meaning = make("p", { className: "help" });
  const outcome = make("div", { "aria-live": "polite" });
  let request = null; // kept until it is answered, so that asking again pays once
  const check = () => {
    const wrong = priceProblem(field.value);
    problem.textContent = wrong;
    problem.hidden = !wrong;
    field.setAttribute("aria-invalid", String(Boolean(wrong)));
    button.disabled = Boolean(wrong);
    button.textContent = wrong ? "Write a price first" : `Pay ${field.value.trim()} and confirm`;
    meaning.textContent = wrong ? "" : `You get a yes or no that is right ${inPercent(accuracy(Number(field.value)))} of the time.`;
    return !wrong;
  };
  const send = guarded(async () => {
    if (!check()) return;
    const price = field.value.trim();
    if (request?.epsilon !== price) request = { release: found.request_id, epsilon: price, request_id: crypto.randomUUID() };
    button.disabled = true;
    try {
      const verdict = await ask("POST", "v1/confirmations", request);
      request = null;
      say("");
      outcome.replaceChildren(...(await verdictView(verdict)));
    } catch (error) {
      if (error.final) request = null;
      throw error;
    } finally {
      check();
    }
  });
  field.addEventListener("input", check);
  const form = make("form", { className: "confirm", onsubmit: (event) => { event.preventDefault(); send(); } },
    make("label", { htmlFor: id }, "Price of the confirmation (epsilon)"), make("div", { className: "row" }, field, button), problem, meaning, outcome);
  check();
  return make("details", { className: "check" }, make("summary", {}, "Confirm this answer"), make("p", { className: "help" }, `Believed before: it flips with probability ${found.confidence ? inPercent(found.confidence) : "unknown"}.`), form);
}

async function verdictView(verdict) {
  const { before = null, after = null } = verdict;
  const right = verdict.reliability ?? accuracy(Number(verdict.epsilon));
  return [
    make("p", { className: "words" }, `${verdict.flips ? "Yes, it flips the decision" : "No, it does not flip the decision"} (right ${inPercent(right)} of the time).`),
    after === null ? "" : make("p", {}, `Before: ${inPercent(before)}. Now: ${inPercent(after)}.`),
    after === null ? "" : chance(after, "It flips the decision, after the confirmation"),
    make("p", { className: "paid" }, await paidInWords(verdict)),
  ];
}

// All answers of mine, newest first; they are kept by the service, so that a reload loses nothing

let next = null; // the page after those that are shown

export async function showAnswers() {
  find("answer-list").replaceChildren();
  await showPage("v1/answers");
  find("answers-none").hidden = find("answer-list").childElementCount > 0;
}

async function showPage(path) {
  const found = await ask("GET", path);
  find("answer-list").append(...found.answers.map(entry));
  next = found.next;
  find("answers-more").hidden = next === null;
}
find("answers-more").addEventListener("click", guarded(() => showPage(`v1/answers?before=${next}`)));

function inShort({ kind, answer }) {
  if (answer === null) return "paid, and not fetched yet";
  if (kind === "selection") return "chosen among several nodes";
  const verdict = kind === "confirmation" ? `: the confirmation says ${answer.flips ? "yes" : "no"}` : "";
  const sure = answer.confidence ? ` (${likelihood(answer.confidence)} to flip, ${inPercent(answer.confidence)})` : "";
  return `${describe(answer)}${verdict}${sure}`;
}

function entry(one) {
  const summary = make("summary", {}, make("strong", {}, one.target_name), ` ${inShort(one)}`, make("span", { className: "help" }, ` ${one.day}, paid ${one.paid}`));
  const body = make("div", {});
  const item = make("details", {}, summary, body);
  item.addEventListener("toggle", guarded(async () => {
    if (item.open && !body.childElementCount) body.replaceChildren(...(await inFull(one)));
  }));
  return make("li", {}, item);
}

async function inFull({ kind, answer, request_id, target, epsilon, paid }) {
  if (kind === "release" && answer !== null) return [await answerView({ ...answer, paid }, null, true)];
  if (kind === "confirmation" && answer !== null) return verdictView({ ...answer, paid });
  if (kind !== "release") return [make("p", {}, `Request id ${request_id}.`)];
  const fetchIt = guarded(async () => {
    await ask("POST", "v1/releases", { target, epsilon, request_id });
    await showAnswers();
  });
  return [make("p", {}, "It is paid, and the answer did not arrive. Fetching it costs nothing."), make("button", { type: "button", onclick: fetchIt }, "Fetch it")];
}

find("answers-filter").addEventListener("input", () => {
  const wanted = find("answers-filter").value.trim().toLowerCase();
  for (const one of find("answer-list").children) one.hidden = !one.querySelector("summary").textContent.toLowerCase().includes(wanted);
});
