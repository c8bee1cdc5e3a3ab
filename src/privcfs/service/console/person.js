// The page of a person: what she can change about herself, in plain words. It is for her alone.

import { ask, download, featureInWords, find, guarded, make, mark, nameOf, priceProblem, say, session } from "./common.js";
import { chance, classBars, classInWords, neighbourhood } from "./drawing.js";
import { offerFeatures } from "./features.js";

let advice = null;
let pending = null; // a paid question keeps its request id until it is answered: asking again never pays twice


export async function showPerson() {
  const mine = (session.me.nodes ?? session.me.targets ?? []);
  find("person-node").replaceChildren(...mine.map((name) => make("option", { value: name }, name)));
  find("person-choose").hidden = mine.length < 2;
  find("person-who").textContent = mine.length === 1 ? `This page is about ${mine[0]}.` : "";
  find("person-show").disabled = !mine.length;
  if (!mine.length) say("Your key is bound to no node. Ask whoever gave it to you.", "bad");
  offerClasses();
  if (mine.length) await offerFeatures(find("person-own"), mine[0]);
}

// The decisions that she may have been told
function offerClasses() {
  const names = [...Array(session.me.classes ?? 0).keys()].map(String);
  find("told").replaceChildren(make("option", { value: "" }, "I was not told, or do not want to say"), ...names.map((name) => make("option", { value: name }, classInWords(name))));
  find("told-part").hidden = !names.length;
}

// Each change in words to the person herself

function toPerson({ intervention }, target, labels) {
  const other = (pair) => pair.find((node) => node !== target);
  const hers = (pair) => pair.includes(target);
  const between = (pair) => `between ${nameOf(pair[0], labels)} and ${nameOf(pair[1], labels)}`;
  const parts = [
    ...intervention.delete.map((pair) => (hers(pair) ? `end your connection with ${nameOf(other(pair), labels)}` : `the connection ${between(pair)} ends`)),
    ...intervention.add.map((pair) => (hers(pair) ? `connect with ${nameOf(other(pair), labels)}` : `a connection ${between(pair)} is made`)),
    ...intervention.mask.map((feature) => `leave out feature ${feature}`),
    ...(intervention.change ?? []).map(featureInWords),
  ];
  if (!parts.length) return ["No change is known that would help"];
  return parts.map((part) => part[0].toUpperCase() + part.slice(1));
}

function steps(change, found) {
  const parts = toPerson(change, found.target, found.labels);
  if (parts.length === 1) return make("p", { className: "words" }, `${parts[0]}.`);
  const all = make("p", { className: "help" }, parts.length === 2 ? "Both together:" : "All of these together:");
  return make("div", {}, all, make("ul", { className: "words" }, ...parts.map((part) => make("li", {}, part))));
}

function question() {
  const body = { target: find("person-node").value };
  if (find("told").value) body.told = Number(find("told").value);
  const price = find("person-epsilon").value.trim();
  if (!price) return body;
  const same = pending && pending.target === body.target && pending.told === body.told && pending.epsilon === price;
  if (!same) pending = { ...body, epsilon: price, request_id: crypto.randomUUID() };
  return pending;
}

function checkPrice() {
  const written = find("person-epsilon").value;
  const problem = written.trim() ? priceProblem(written) : "";
  mark(find("person-epsilon"), problem);
  find("person-show").disabled = Boolean(problem);
  find("person-show").textContent = problem ? "Show my way out" : written.trim() ? `Pay ${written.trim()} and show my way out` : "Show my way out";
}

async function show() {
  find("person-show").disabled = true;
  say("");
  try {
    advice = await ask("POST", "v1/advice", question());
    pending = null;
  } catch (error) {
    if (error.final) pending = null;
    throw error;
  } finally {
    checkPrice();
  }
  present(advice);
}

function present(found) {
  const [best, ...others] = found.changes;
  find("advice-best").replaceChildren(steps(best, found), chance(best.confidence, "It flips the decision"));
  find("advice-others").replaceChildren(...others.map((one) => make("li", {}, steps(one, found), chance(one.confidence, "It flips the decision"))));
  find("advice-others-part").hidden = !others.length;
  const told = found.meaning?.told ? make("p", {}, found.meaning.told) : "";
  find("advice-believed").replaceChildren(told, classBars("Believed present decision", found.believed) ?? "");
  find("advice-promise").textContent = found.promise ?? "";
  find("advice-premises").replaceChildren(...(found.premises ?? []).map((words) => make("li", {}, words)));
  find("advice").hidden = false;
  find("advice-title").focus();
  illustrate(found, best.intervention);
}

// Her and the connections that change, and nothing else of her
function illustrate(found, intervention) {
  const alone = { target: found.target, neighbours: [], pairs: [], labels: found.labels };
  const { picture, legend } = neighbourhood(alone, intervention, "You");
  find("advice-figure").hidden = !intervention.delete.length && !intervention.add.length;
  find("advice-picture").replaceChildren(picture);
  find("advice-legend").replaceChildren(...legend);
}

find("person-form").addEventListener("submit", (event) => {
  event.preventDefault();
  guarded(show)(event);
});
find("person-epsilon").addEventListener("input", checkPrice);
find("person-node").addEventListener("change", guarded(() => offerFeatures(find("person-own"), find("person-node").value)));
find("advice-save").addEventListener("click", () => download("my-advice.json", JSON.stringify(advice, null, 2)));
find("advice-print").addEventListener("click", () => window.print());
