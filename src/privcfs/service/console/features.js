// A change of features that somebody has in mind: a form that knows the schema, and what would become of the change.

import { ask, count, featureInWords, guarded, latest, make } from "./common.js";
import { classBars } from "./drawing.js";

const started = latest();

// Fills a form for one node, or hides the part where nothing can be changed. `part` holds the form and its result.
export async function offerFeatures(part, target) {
  const form = part.querySelector("form");
  const result = part.querySelector("[data-result]");
  part.hidden = true;
  form.replaceChildren();
  result.replaceChildren();
  const current = started();
  const found = await ask("GET", `v1/features/${encodeURIComponent(target)}`);
  if (!current() || !found.features.length) return;
  const fields = found.features.map((one, number) => field(one, `${part.id}-${number}`));
  const button = make("button", { type: "submit", className: "quiet", disabled: true }, "What would become of it?");
  const rules = found.rules.length ? make("p", { className: "help" }, `Rules: ${found.rules.join("; ")}.`) : null;
  form.replaceChildren(make("div", { className: "columns" }, ...fields.map((one) => one.element)), ...[rules, make("p", { className: "row" }, button)].filter(Boolean));
  form.oninput = () => {
    const problems = fields.map((one) => one.check());
    button.disabled = problems.some(Boolean) || !fields.some((one) => one.change());
    result.replaceChildren();
  };
  form.onsubmit = guarded(async (event) => {
    event.preventDefault();
    const change = fields.map((one) => one.change()).filter(Boolean);
    if (button.disabled || !change.length) return;
    show(result, await ask("POST", "v1/beliefs", { target: found.target, intervention: { change } }));
  });
  part.hidden = false;
}

// One feature: a number with its bounds and its step, or a choice. Left as it is, it changes nothing.
function field(one, id) {
  const now = one.from ? `${one.from}${one.unit ? ` ${one.unit}` : ""}` : "not public";
  const problem = make("p", { id: `${id}-problem`, className: "problem", role: "alert", hidden: true });
  const isNumber = one.kind === "number";
  const input = isNumber
    ? make("input", { id, type: "number", min: one.least, max: one.most, step: one.step, inputMode: "decimal", placeholder: "as it is", autocomplete: "off", "aria-describedby": problem.id })
    : make("select", { id }, make("option", { value: "" }, "as it is"), ...one.values.map((value) => make("option", { value }, value)));
  const bounds = isNumber ? ` (${one.least} to ${one.most}, in steps of ${one.step})` : "";
  const label = make("label", { htmlFor: id }, `${one.feature}${one.unit && isNumber ? ` in ${one.unit}` : ""}`);
  const help = make("p", { className: "help" }, `now ${now}${bounds}`);
  return {
    element: make("div", {}, label, input, problem, help),
    check: () => {
      const text = isNumber ? wrongNumber(input, one) : "";
      problem.textContent = text;
      problem.hidden = !text;
      input.setAttribute("aria-invalid", text ? "true" : "false");
      return text;
    },
    change: () => (input.value && input.value !== one.from ? { feature: one.feature, to: plain(input.value) } : null),
  };
}

// The browser checks bounds and steps exactly as the schema does, because its steps begin at `min`, a value of the schema.
function wrongNumber(input, one) {
  const { badInput, rangeUnderflow, rangeOverflow, stepMismatch } = input.validity;
  if (badInput) return "Write a number.";
  if (rangeUnderflow || rangeOverflow) return `Choose from ${one.least} to ${one.most}.`;
  return stepMismatch ? `Choose in steps of ${one.step}, counted from ${one.least}.` : "";
}

// A number as the schema writes it: 24 for 24.0 and 024
const plain = (text) => (/^-?[0-9.]+$/.test(text) && text.trim() !== "" && !Number.isNaN(Number(text)) ? String(Number(text)) : text);

function show(result, found) {
  const not = found.not_allowed.map((words) => make("p", { className: "problem" }, `Not allowed: ${words}.`));
  const said = found.intervention.change.map(featureInWords).join(", ");
  const bars = [classBars("Believed decision now", found.believed.before), classBars("Believed decision after this change", found.believed.after)];
  result.replaceChildren(
    make("p", { className: "words" }, said),
    make("p", { className: "help" }, `It costs ${count(found.cost, "unit")} in the owner's currency of changes.`),
    ...not,
    make("div", { className: "columns" }, ...bars.filter(Boolean)),
    make("p", { className: "help" }, "Believed from imagined graphs that public data make likely. The true decision is private and is not shown."),
  );
}
