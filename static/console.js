/* What the pages do beyond htmx: theme, clock, live ticks, freshness, keys, copying, deep links.
   No inline code anywhere, so that the content security policy can stay 'self'. */

const root = document.documentElement;
const byId = (id) => document.getElementById(id);

/* Theme: a cookie, so that the server prints it and nothing flashes. */

const isDark = () =>
  root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;

function switchTheme() {
  root.dataset.theme = isDark() ? "light" : "dark";
  document.cookie = `theme=${root.dataset.theme}; path=/; max-age=31536000; samesite=lax`;
}

/* One polite live region: states and results, not every tick. */

const announce = (text) => { byId("live").textContent = text; };

/* Copying also works on plain http, where the clipboard interface is missing. */

async function copy(button) {
  const text = button.dataset.copy;
  if (navigator.clipboard) await navigator.clipboard.writeText(text);
  else {
    const area = Object.assign(document.createElement("textarea"), { value: text });
    button.after(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  announce(`Copied ${text}`);
  const says = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = says; }, 2000);
}

/* What is marked data-act works only with this script, so it is shown only now. */

const acts = {
  theme: switchTheme,
  copy,
  print: () => print(),
  "close-notice": () => byId("notice").replaceChildren(),
};

const showActs = (within) =>
  within.querySelectorAll("[data-act][hidden]").forEach((button) => { button.hidden = false; });

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-act]");
  if (button) acts[button.dataset.act]?.(button);
});

/* Deep links into folded parts. */

function openLinked() {
  const place = location.hash.length > 1 && byId(decodeURIComponent(location.hash.slice(1)));
  if (!place) return;
  for (let part = place; part; part = part.parentElement) {
    if (part.tagName === "DETAILS") part.open = true;
  }
  place.scrollIntoView();
}

/* Clock and freshness. Fragments ask for themselves with hx-trigger="tick from:body". */

const TICK_MS = 3_000;
const HIDDEN_TICK_MS = 60_000;
const SILENT_AFTER_MS = 15_000;
/* A part that may be reordered listens to tick-calm; while a hand is on it, tick-held is sent instead. */
const HELD = "[data-calm] tbody:hover, [data-calm] :focus, [data-calm] [data-here]";
let lastTick = Date.now();
let lastAnswer = Date.now();

const isLive = () => document.querySelector('[hx-trigger*="tick"], [hx-sse\\:connect]') !== null;

function tellTime() {
  const now = new Date();
  byId("clock").dateTime = now.toISOString();
  byId("clock").firstElementChild.textContent = now.toISOString().slice(11, 19);
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone === "UTC") return;
  const local = now.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  byId("local-clock").textContent = ` · ${local} ${zone.split("/").pop().replaceAll("_", " ")}`;
}

function tellFreshness() {
  const told = byId("freshness");
  const seconds = Math.round((Date.now() - lastAnswer) / 1000);
  const silent = isLive() && !document.hidden && seconds * 1000 >= SILENT_AFTER_MS;
  told.hidden = !isLive();
  told.textContent = silent ? `no answer from the console for ${seconds} s · ` : `live, ${seconds} s ago · `;
  if (silent && !root.hasAttribute("data-silent")) announce("No answer from the console.");
  if (!silent && root.hasAttribute("data-silent")) announce("The console answers again.");
  root.toggleAttribute("data-silent", silent);
}

function everySecond() {
  tellTime();
  tellFreshness();
  const interval = document.hidden ? HIDDEN_TICK_MS : TICK_MS;
  if (Date.now() - lastTick < interval) return;
  lastTick = Date.now();
  document.body.dispatchEvent(new CustomEvent("tick"));
  const held = document.querySelector(HELD) !== null;
  document.body.dispatchEvent(new CustomEvent(held ? "tick-held" : "tick-calm"));
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  lastTick = 0;
  everySecond();
});

/* htmx: every answer counts for freshness; only our own error answers are swapped. */

document.addEventListener("htmx:before:response", (event) => {
  const answer = event.detail.ctx.response?.raw;
  if (!answer) return;
  const ours = answer.headers.has("X-Request-ID");
  if (ours) lastAnswer = Date.now();
  if (answer.status < 400 || answer.headers.has("HX-Retarget")) return;
  event.preventDefault();  // a proxy's error page would replace the part that asked
  announce(`The answer was ${answer.status}.`);
  event.target.dispatchEvent(new CustomEvent("refused"));
});
document.addEventListener("htmx:after:swap", () => {
  lastAnswer = Date.now();
  showActs(document);
  showTabIcon();
});

/* What renames the browser's tab names its icon too. It is set only when it is another one. */

function showTabIcon() {
  const wanted = document.querySelector("[data-tab-icon]")?.dataset.tabIcon;
  const icon = byId("tab-icon");
  if (wanted && icon.getAttribute("href") !== wanted) icon.setAttribute("href", wanted);
}

/* Keys. An element with data-key is pressed by that key; rows are elements with data-row. */

const LIST_KEYS = { j: "next row", k: "previous row", o: "open the row", x: "select the row" };
let prefix = "";

const keysAreOn = () => localStorage.getItem("keys") !== "off";
const rows = () => [...document.querySelectorAll("[data-row]")];
const here = () => document.querySelector("[data-row][data-here]");

function moveBy(step) {
  const all = rows();
  if (!all.length) return;
  const next = all[Math.min(all.length - 1, Math.max(0, all.indexOf(here()) + step))];
  here()?.removeAttribute("data-here");
  next.setAttribute("data-here", "");
  next.querySelector("a[href]")?.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

function find() {
  const field = document.querySelector("#q") ?? byId("find");
  field?.focus();
  field?.select();
}

function showKeys() {
  const buttons = [...document.querySelectorAll("[data-key]")].map((part) => [
    part.dataset.key,
    part.dataset.keySays ?? part.getAttribute("aria-label") ?? part.firstChild?.textContent.trim() ?? "",
  ]);
  const list = rows().length ? Object.entries(LIST_KEYS) : [];
  const told = [...list, ...buttons, ["/", "find or filter"], ["?", "all keys"], ["Esc", "close"]];
  byId("keys").querySelector("dl").replaceChildren(...told.flatMap(([key, says]) => {
    const term = document.createElement("dt");
    term.append(Object.assign(document.createElement("kbd"), { textContent: key }));
    return [term, Object.assign(document.createElement("dd"), { textContent: says })];
  }));
  byId("keys").showModal();
}

const always = { "/": find, "?": showKeys };
const letters = {
  j: () => moveBy(1),
  k: () => moveBy(-1),
  o: () => here()?.querySelector("a[href]")?.click(),
  x: () => here()?.querySelector("input[type=checkbox]")?.click(),
};

const isTyping = (event) =>
  event.target.matches("input:not([type=checkbox]), textarea, select, [contenteditable]") ||
  event.metaKey || event.ctrlKey || event.altKey;

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") byId("notice").replaceChildren();
  if (event.key === "Enter" && event.ctrlKey) event.target.closest("form")?.requestSubmit();
  if (isTyping(event) || event.key.length > 1 || byId("keys").open) return;
  const key = prefix + event.key;
  prefix = event.key === "g" ? "g " : "";
  const button = document.querySelector(`[data-key="${CSS.escape(key)}"]:not([disabled])`);
  const act = always[key] ?? (keysAreOn() ? (button ? () => button.click() : letters[key]) : undefined);
  if (!act) return;
  event.preventDefault();
  act();
});

addEventListener("DOMContentLoaded", () => {
  showActs(document);
  openLinked();
  byId("keys-on").checked = keysAreOn();
  byId("keys-on").addEventListener("change", (event) =>
    localStorage.setItem("keys", event.target.checked ? "on" : "off"));
  everySecond();
  setInterval(everySecond, 1000);
});
addEventListener("hashchange", openLinked);
