// Functions that rooms share: requests, elements, cards.

// The server's answer. Throws an `Expected` error if it refuses; uncaught errors are shown at the end of the page.
export async function ask(path, body) {
  const how = body === undefined ? {} : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  let answer;
  try {
    answer = await fetch(path, how);
  } catch {
    throw new Expected("the server does not answer: is it still running?");
  }
  const said = await answer.json().catch(() => ({}));
  if (answer.ok) return said;
  throw new Expected(said.error || `the server answered ${answer.status}`);
}

let hiding;

function trouble(words) {
  const place = document.getElementById("trouble");
  place.textContent = words;
  place.hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => (place.hidden = true), 8000);
}

export class Expected extends Error {}
addEventListener("unhandledrejection", (event) => {
  if (!(event.reason instanceof Expected)) return;
  event.preventDefault();
  trouble(event.reason.message);
});

// An error message, in place of the content that is missing.
export const failure = (words) => make("p", { class: "panel failure", role: "alert" }, words);

// An element: attributes by name, handlers as onclick and so on; children are elements or text.
export function make(tag, attributes = {}, ...children) {
  const [space, name] = tag.startsWith("svg:") ? ["http://www.w3.org/2000/svg", tag.slice(4)] : [null, tag];
  const element = space ? document.createElementNS(space, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes))
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== undefined && value !== null) element.setAttribute(key, value);
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const NAMED = ["id", "data-hand", "data-label", "data-key", "data-answer", "aria-label"]; // attributes that identify an element

// Replace the children of an element. The focus moves to the new element with the same identifying attribute.
export function redraw(place, ...children) {
  const stood = place.contains(document.activeElement) ? document.activeElement : null;
  const name = NAMED.find((key) => stood?.hasAttribute(key));
  const found = name && `[${name}="${CSS.escape(stood.getAttribute(name))}"]`;
  const within = stood?.closest("[data-player]")?.dataset.player;
  place.replaceChildren(...children);
  if (!found) return;
  const side = within && place.querySelector(`[data-player="${CSS.escape(within)}"]`);
  ((side || place).querySelector(found) || place.querySelector(found))?.focus({ preventScroll: true });
}

// A square of buttons is one tab stop, and arrow keys move inside it.
export function square(place, columns) {
  const cells = [...place.children];
  const free = (cell) => cell?.tagName === "BUTTON" && !cell.disabled;
  const first = cells.find((cell) => free(cell) && cell.getAttribute("aria-pressed") === "true") || cells.find(free);
  const stop = (one) => cells.forEach((cell) => (cell.tabIndex = cell === one ? 0 : -1));
  stop(first);
  place.addEventListener("focusin", (event) => cells.includes(event.target) && stop(event.target));
  place.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[event.key];
    const from = cells.indexOf(event.target);
    if (!step || from < 0) return;
    event.preventDefault();
    for (let at = from + step; at >= 0 && at < cells.length; at += step) if (free(cells[at])) return cells[at].focus();
  });
  return place;
}

const SUITS = { s: "♠", h: "♥", d: "♦", c: "♣" };
const NAMES = { s: "spades", h: "hearts", d: "diamonds", c: "clubs" };

export function card(name) {
  if (!name) return make("span", { class: "card none", "aria-hidden": "true" });
  if (name === "?") return make("span", { class: "card back", role: "img", "aria-label": "a hidden card" }, "?");
  const [rank, suit] = name;
  return make("span", { class: `card ${suit}`, role: "img", "aria-label": `${rank} of ${NAMES[suit]}` }, make("span", {}, rank), make("span", {}, SUITS[suit]));
}

export const suited = (name) => name[0] + (SUITS[name[1]] || name[1]);
export const percent = (share) => `${(100 * share).toFixed((share > 0 && share < 0.0995) || (share > 0.9005 && share < 0.9995) ? 1 : 0)}%`;
// Expected values are rounded once, for display. Verdicts show the differences of the displayed numbers.
export const rounded = (value, digits) => Number(value.toFixed(digits)) + 0; // and no -0
export const fixed = (value, digits) => rounded(value, digits).toFixed(digits);
export const behind = (values, taken, digits) => rounded(Math.max(...values.map((value) => rounded(value, digits))) - rounded(values[taken], digits), digits);
export const chips = (amount) => Number(amount).toLocaleString("en");
export const signed = (amount) => (amount > 0 ? "+" : amount < 0 ? "−" : "") + chips(Math.abs(amount));

let everybody;
const known = () => (everybody = everybody || ask("api/players").catch((error) => ((everybody = null), Promise.reject(error))));
export const players = async () => (await known()).players;
export const bucketed = async () => (await known()).bucketed; // players who sort hands into buckets
export const spots = async () => (await known()).spots; // solved and saved: for study and training, not for play
export const small = async () => (await known()).small; // games that are solved on demand

export function chooser(names, chosen, words, changed) {
  const list = make("select", { "aria-label": words, onchange: (event) => changed(event.target.value) });
  for (const name of names) list.append(make("option", { value: name, selected: name === chosen }, name));
  return make("label", {}, words, list);
}

// A deck of buttons to choose `count` public cards.
export function deckOf(view, taken, chosen, changed) {
  const ranks = [...view.ranks];
  const rows = [...view.suits].map((suit) =>
    ranks.map((rank) => {
      const name = rank + suit;
      return make(
        "button",
        {
          class: suit,
          "aria-pressed": String(chosen.includes(name)),
          "aria-label": `${rank} of ${NAMES[suit]}`,
          disabled: taken.includes(name),
          onclick: () => changed(chosen.includes(name) ? chosen.filter((other) => other !== name) : [...chosen, name]),
        },
        suited(name),
      );
    }),
  );
  return square(make("div", { class: "deck", style: `grid-template-columns: repeat(${ranks.length}, auto)` }, rows.flat()), ranks.length);
}
