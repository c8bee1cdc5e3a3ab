// The console of one vault: signing in, and the parts that each role sees. It loads nothing from elsewhere.

import { ask, find, make, say, session } from "./common.js";
import { showAsk } from "./analyst.js";
import { showAnswers } from "./answers.js";
import { showBudget, showKeys, showLedger, showLog } from "./owner.js";
import { showPerson } from "./person.js";

const PARTS = {
  person: ["Your way out", showPerson, ["person"]],
  ask: ["Ask", showAsk, ["analyst", "owner"]],
  answers: ["My answers", showAnswers, ["analyst", "owner"]],
  budget: ["Budget", showBudget, ["analyst", "owner"]],
  ledger: ["Ledger", showLedger, ["owner"]],
  keys: ["Keys", showKeys, ["owner"]],
  log: ["Log", showLog, ["owner"]],
};
const ROLES = { owner: "owner", analyst: "analyst", person: "for yourself" };

async function enter() {
  session.me = await ask("GET", "v1/me");
  const { role, analyst } = session.me;
  if (session.key) sessionStorage.setItem("key", session.key);
  find("enter").hidden = true;
  find("who").hidden = false;
  find("leave").hidden = !session.key; // whom a proxy has signed in, the proxy signs out
  find("name").textContent = `${role === "person" ? analyst.replace("person: ", "") : analyst} (${ROLES[role] ?? role})`;
  const parts = Object.keys(PARTS).filter((id) => PARTS[id][2].includes(role));
  find("tabs").replaceChildren(...parts.map((id) => make("button", { type: "button", role: "tab", id: `tab-${id}`, "aria-controls": id, onclick: () => show(id) }, PARTS[id][0])));
  find("tabs").hidden = parts.length < 2;
  const before = sessionStorage.getItem("part");
  await show(parts.includes(before) ? before : parts[0]);
}

function leave(reason = "") {
  sessionStorage.clear();
  if (reason) sessionStorage.setItem("reason", reason);
  location.reload(); // so that nothing of one person's answers stays in the page for the next
}
session.leave = () => leave("Your key is not valid any more: it ended or was revoked.");

async function show(id) {
  sessionStorage.setItem("part", id);
  for (const one of document.querySelectorAll("[role=tabpanel]")) one.hidden = one.id !== id;
  for (const one of document.querySelectorAll("[role=tab]")) {
    const chosen = one.id === `tab-${id}`;
    one.setAttribute("aria-selected", chosen);
    one.tabIndex = chosen ? 0 : -1;
  }
  say("");
  try {
    await PARTS[id][1]();
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
  session.key = find("secret").value.trim();
  say("");
  try {
    await enter();
  } catch (error) {
    session.key = null;
    say(error.status === 401 ? "This key is not valid: it may be mistyped, ended or revoked." : error.message, "bad");
  }
});
find("leave").addEventListener("click", () => leave());

// With a key of this tab, or as whom a proxy in front of the service says; otherwise a key is asked for.
enter().catch((error) => {
  sessionStorage.removeItem("key");
  session.key = null;
  find("enter").hidden = false;
  say(error.status === 401 ? (sessionStorage.getItem("reason") ?? "") : error.message, "bad");
  sessionStorage.removeItem("reason");
});
