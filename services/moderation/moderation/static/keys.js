// The keyboard of the moderation pages. Everything here clicks or focuses what the page has anyway.
"use strict";

const STORED = "mafl-operator-keys";
const box = document.getElementById("use-keys");
const items = [...document.querySelectorAll("[data-item]")];
let sent = false;

if (box) {
  box.closest("[hidden]").hidden = false;
  box.checked = localStorage.getItem(STORED) !== "off";
  box.addEventListener("change", () => localStorage.setItem(STORED, box.checked ? "on" : "off"));
}

// One press, one judgement: a second one would be refused, but should not be asked for.
document.addEventListener("submit", (event) => {
  if (sent) event.preventDefault();
  sent = true;
});
window.addEventListener("pageshow", () => { sent = false; });

function current() {
  return items.find((item) => item.contains(document.activeElement)) ?? document.querySelector("[data-current]");
}

function choose(item) {
  for (const other of items) other.toggleAttribute("data-current", other === item);
  item.focus({ preventScroll: true });
  item.scrollIntoView({ block: "nearest" });
}

function click(selector, within = document) {
  const found = within?.querySelector(selector);
  found?.click();
  return Boolean(found);
}

function move(step) {
  if (items.length < 2) return click(step > 0 ? "[data-next]" : "[data-preceding]");
  const next = items[items.indexOf(current()) + step];
  if (next) choose(next);
  else return click(step > 0 ? "[data-following]" : "[data-previous]");
  return true;
}

function help() {
  const keys = document.getElementById("keys");
  keys.open = !keys.open;
  (keys.open ? keys.querySelector("summary") : current())?.focus();
  if (keys.open) keys.scrollIntoView({ block: "nearest" });
  return true;
}

function note() {
  const field = current()?.querySelector("[data-note]");
  field?.focus();
  field?.scrollIntoView({ block: "nearest" });
  return Boolean(field);
}

function search() {
  const field = document.querySelector("[data-search]");
  field?.focus();
  field?.select();
  return Boolean(field);
}

const KEYS = {
  j: () => move(1),
  k: () => move(-1),
  o: () => click("[data-open]", current()),
  a: () => click("[data-key=a]", current()),
  f: () => click("[data-key=f]", current()),
  u: () => click("[data-key=u]"),
  b: () => click("[data-back]"),
  n: note,
  "/": search,
  "?": help,
};
const QUEUE_KEYS = { ArrowDown: KEYS.j, ArrowUp: KEYS.k, Enter: KEYS.o };

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || (box && !box.checked)) return;
  const focused = document.activeElement;
  if (focused.matches("input, textarea, select")) {
    if (event.key === "Escape") (current() ?? document.body).focus();
    return;
  }
  let act = KEYS[event.key];
  // Enter on a link or a button is the browser's, and so are the arrows on a page of one text.
  if (!act && items.length > 1 && !focused.matches("a, button, summary")) act = QUEUE_KEYS[event.key];
  if (act && act()) event.preventDefault();
});

const chosen = document.querySelector("[data-current]");
if (chosen && (location.hash === "#current" || document.activeElement === document.body)) {
  if (!document.querySelector("[role=alert]") && location.hash !== "#history") choose(chosen);
}
