// A field for a node's name with suggestions below it, for mouse, finger and keyboard.

import { ask, delayed, find, latest, make, mark } from "./common.js";

// Calls `chosen` with the name of a node that exists, and with null as soon as the text is no such name.
export function nodeField(field, list, chosen) {
  let active = -1;
  const started = latest();
  const options = () => [...list.children];

  function close() {
    list.hidden = true;
    active = -1;
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
  }

  function point(number) {
    active = number;
    options().forEach((one, place) => one.setAttribute("aria-selected", String(place === number)));
    options()[number]?.scrollIntoView({ block: "nearest" });
    if (number >= 0) field.setAttribute("aria-activedescendant", options()[number].id);
  }

  function choose(name) {
    started(); // a search that is still under way is of no interest any more
    field.value = name;
    mark(field, "");
    close();
    chosen(name);
  }

  function offer(names, more) {
    const shown = names.map((name, number) => make("li", { id: `${list.id}-${number}`, role: "option", "aria-selected": "false", onmousedown: (event) => event.preventDefault(), onclick: () => choose(name) }, name));
    list.replaceChildren(...shown);
    list.hidden = !shown.length;
    active = -1;
    field.setAttribute("aria-expanded", String(shown.length > 0));
    find(`${field.id}-count`).textContent = shown.length ? `${shown.length}${more ? " or more" : ""} suggestions; choose with the arrow keys and Enter.` : "";
  }

  const search = delayed(async () => {
    const text = field.value.trim();
    const current = started();
    if (!text) return close();
    try {
      const { names, more } = await suggestions(text);
      if (!current()) return;
      if (names.includes(text)) {
        mark(field, "");
        chosen(text);
      }
      const others = names.filter((name) => name !== text);
      if (document.activeElement === field) offer(others, more);
      else close();
      if (!names.length) mark(field, `No node that you may ask about has “${text}” in its name: it is not a node.`);
    } catch (error) {
      if (current()) mark(field, error.message);
    }
  }, 200);

  field.addEventListener("input", () => {
    started();
    mark(field, "");
    close();
    chosen(null);
    search();
  });
  field.addEventListener("blur", close);
  field.addEventListener("keydown", (event) => {
    const number = options().length;
    if (event.key === "Escape") return close();
    if (list.hidden || !number) return;
    if (event.key === "ArrowDown") point((active + 1) % number);
    else if (event.key === "ArrowUp") point(active <= 0 ? number - 1 : active - 1);
    else if (event.key === "Enter" && active >= 0) choose(options()[active].textContent);
    else return;
    event.preventDefault();
  });
  return choose;
}

async function suggestions(text) {
  const found = await ask("GET", `v1/nodes?search=${encodeURIComponent(text)}`);
  return { names: found.nodes.map((one) => one.name), more: found.more };
}
