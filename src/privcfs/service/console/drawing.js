// Pictures and bars. Each is an SVG with a text that says the same, and no picture shows a private edge that its reader
// does not know.

import { accuracy, accuracyInPercent, inPercent, likelihood, make, nameOf, percent } from "./common.js";

const SVG = "http://www.w3.org/2000/svg";
const MOST_OTHERS = 12; // more names in one picture are not legible on a phone
const WIDEST_NAME = 108; // of the 400 units of a picture

export function draw(name, fields = {}, ...children) {
  const one = document.createElementNS(SVG, name);
  for (const [field, value] of Object.entries(fields)) one.setAttribute(field, value);
  one.append(...children);
  return one;
}

function track(share, words, high = false) {
  const picture = draw("svg", { class: "track-picture", viewBox: "0 0 600 16", preserveAspectRatio: "none", role: "img", "aria-label": words });
  picture.append(
    draw("rect", { class: "track", x: 1, y: 1, width: 598, height: 14, rx: 4 }),
    draw("rect", { class: high ? "fill high" : "fill", x: 1, y: 1, width: share > 0 ? Math.max(598 * Math.min(share, 1), 4) : 0, height: 14, rx: 4 }),
  );
  return picture;
}

const ends = (left, right) => make("p", { className: "ends" }, make("span", {}, left), make("span", {}, right));

// What a price, or a sum of prices, tells about one edge at most
export function gauge(epsilon, title, about = "about one connection") {
  const share = 2 * accuracy(epsilon) - 1;
  const words = `Someone who wants to learn ${about}, and knows everything else, is right at most ${accuracyInPercent(epsilon)} of the time.`;
  return make("div", { className: "measure" }, make("p", { className: "measure-title" }, title), track(share, words, share > 0.75), ends("50 %: a coin", "100 %: certain"), make("p", { className: "help" }, words));
}

// How likely a change flips the decision
export function chance(probability, title) {
  const words = `${title}: ${likelihood(probability)}, ${inPercent(probability)}`;
  return make("div", { className: "measure" }, make("p", { className: "measure-title" }, words), track(Number(probability), words), ends("0 %: never", "100 %: always"));
}

// Believed classes, the likeliest first
export function classBars(title, believed) {
  const rows = Object.entries(believed ?? {}).map(([name, one]) => [name, Number(one)]).sort((one, other) => other[1] - one[1]);
  if (!rows.length) return null;
  const bars = rows.slice(0, 4).map(([name, one]) => make("div", { className: "class-bar" }, make("span", {}, classInWords(name)), track(one, `${classInWords(name)}: ${exactly(one)}`), make("span", {}, exactly(one))));
  return make("div", { className: "classes" }, make("p", { className: "measure-title" }, title), ...bars);
}

const exactly = (probability) => (probability >= 0.9995 ? `more than ${percent(99.9)}` : percent((100 * probability).toFixed(1))); // with all digits that there are, so that they add up
export const classInWords = (name) => (/^[0-9]+$/.test(name) ? `class ${name}` : name);

export function meter(name, balance, words) {
  const limit = balance.limit === null ? null : Number(balance.limit);
  const share = limit ? Number(balance.spent) / limit : 0;
  return make("div", { className: "measure meter" }, make("p", {}, words), limit === null ? null : track(share, words, share > 0.8));
}

export function smallBar(share, words) {
  return make("div", { className: "small-bar" }, track(share, words, share > 0.75), make("span", {}, words));
}

export function bars(days) {
  if (!days.length) return make("p", { className: "help" }, "Nothing is spent yet.");
  const most = Math.max(...days.map(([, spent]) => spent));
  const words = `Spent on each day: ${days.map(([day, spent]) => `${day} ${spent}`).join(", ")}`;
  const step = 600 / Math.max(days.length, 10);
  const every = Math.ceil(days.length / 10); // a label for each bar would overlap its neighbours
  const picture = draw("svg", { class: "chart", viewBox: "0 0 600 150", role: "img", "aria-label": words });
  days.forEach(([day, spent], number) => {
    const [height, middle] = [(100 * spent) / most, number * step + step / 2];
    picture.append(draw("rect", { class: "fill", x: number * step + step * 0.1, y: 122 - height, width: step * 0.8, height }, draw("title", {}, `${day}: ${spent}`)));
    if (number % every) return;
    picture.append(draw("text", { x: middle, y: 116 - height, "text-anchor": "middle" }, String(Number(spent.toPrecision(3)))), draw("text", { x: middle, y: 140, "text-anchor": "middle" }, day.slice(5)));
  });
  return picture;
}

// A node on the left and the nodes around it in a column on the right: no name can lie on a line or on another name.

const ruler = document.createElement("canvas").getContext("2d");

// A name that is too wide for its place is cut, visibly; its title has it in full
function short(name) {
  ruler.font = "14px system-ui, sans-serif"; // as in console.css
  const letters = [...name].slice(0, 100);
  let shown = name;
  while (letters.length && ruler.measureText(shown).width > WIDEST_NAME) {
    letters.pop();
    shown = `${letters.join("")}…`;
  }
  return shown;
}

const same = (list, one, other) => list.some(([a, b]) => (a === one && b === other) || (a === other && b === one));

export function neighbourhood(around, intervention, self = null) {
  const named = [...intervention.delete, ...intervention.add].flat();
  const all = [...new Set([...named, ...around.neighbours])].filter((node) => node !== around.target);
  const others = all.slice(0, Math.max(MOST_OTHERS, new Set(named).size));
  const height = Math.max(others.length * 34, 70) + 10;
  const place = new Map([[around.target, [130, height / 2]]]);
  others.forEach((node, number) => place.set(node, [272, (height * (number + 0.5)) / others.length]));
  const name = self ?? nameOf(around.target, around.labels);
  const picture = draw("svg", { class: "neighbourhood", viewBox: `0 0 400 ${height}`, role: "img", "aria-label": `${name} and ${others.length} other nodes` });
  const kinds = new Set();
  const line = (one, other, kind) => {
    const [from, to] = [place.get(one), place.get(other)];
    if (!from || !to) return;
    kinds.add(kind);
    const bow = from[0] === to[0] ? Math.min(110, 24 + Math.abs(from[1] - to[1]) / 3) : 0; // two others: an arc before the names
    const path = bow ? `M${from[0]} ${from[1]} Q${from[0] - bow} ${(from[1] + to[1]) / 2} ${to[0]} ${to[1]}` : `M${from[0]} ${from[1]} L${to[0]} ${to[1]}`;
    picture.append(draw("path", { class: kind, d: path }));
  };
  for (const [one, other] of around.pairs) if (!same(intervention.delete, one, other)) line(one, other, "edge");
  for (const [one, other] of intervention.delete) line(one, other, "gone");
  for (const [one, other] of intervention.add) line(one, other, "new");
  for (const [node, [x, y]] of place) {
    const mine = node === around.target;
    const full = mine ? name : nameOf(node, around.labels);
    const text = draw("text", { x: mine ? x - 16 : x + 14, y: y + 5, "text-anchor": mine ? "end" : "start" }, short(full));
    picture.append(draw("g", {}, draw("title", {}, full), draw("circle", { class: mine ? "dot self" : "dot", cx: x, cy: y, r: mine ? 10 : 7 }), text));
  }
  return { picture, legend: legend(kinds, all.length - others.length, self !== null) };
}

const KINDS = { edge: "public connection", gone: "to end", new: "new" };

function legend(kinds, hidden, personal) {
  const items = Object.keys(KINDS).filter((kind) => kinds.has(kind)).map((kind) => {
    const sample = draw("svg", { class: "sample", viewBox: "0 0 36 10", "aria-hidden": "true" }, draw("path", { class: kind, d: "M2 5 L34 5" }));
    return make("li", {}, sample, KINDS[kind]);
  });
  const further = hidden ? ` ${hidden} further public connections are not drawn.` : "";
  const never = personal ? "Only the connections that change are drawn." : "Private connections are never drawn: a change may name a pair that is none.";
  return [make("ul", { className: "legend" }, ...items), make("p", { className: "help" }, `${never}${further}`)];
}
