// What rooms share: asking the server, making elements, drawing cards.

export async function ask(path, body) {
  const how = body === undefined ? {} : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  let answer;
  try {
    answer = await fetch(path, how);
  } catch {
    return trouble("the server does not answer: is it still running?");
  }
  const said = await answer.json().catch(() => ({}));
  if (answer.ok) return said;
  return trouble(said.error || `the server answered ${answer.status}`);
}

let hiding;

function trouble(words) {
  const place = document.getElementById("trouble");
  place.textContent = words;
  place.hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => (place.hidden = true), 8000);
  throw new Expected(words);
}

export class Expected extends Error {}
addEventListener("unhandledrejection", (event) => event.reason instanceof Expected && event.preventDefault());

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

const SUITS = { s: "♠", h: "♥", d: "♦", c: "♣" };
const NAMES = { s: "spades", h: "hearts", d: "diamonds", c: "clubs" };

export function card(name) {
  if (!name) return make("span", { class: "card none", "aria-hidden": "true" });
  if (name === "?") return make("span", { class: "card back", role: "img", "aria-label": "a hidden card" }, "?");
  const [rank, suit] = name;
  return make("span", { class: `card ${suit}`, role: "img", "aria-label": `${rank} of ${NAMES[suit]}` }, make("span", {}, rank), make("span", {}, SUITS[suit]));
}

export const suited = (name) => name[0] + (SUITS[name[1]] || name[1]);
export const percent = (share) => `${(100 * share).toFixed(share > 0 && share < 0.0995 ? 1 : 0)}%`;
export const chips = (amount) => Number(amount).toLocaleString("en");
export const signed = (amount) => (amount > 0 ? "+" : amount < 0 ? "−" : "") + chips(Math.abs(amount));

let everybody;
const known = () => (everybody = everybody || ask("api/players").catch((error) => ((everybody = null), Promise.reject(error))));
export const players = async () => (await known()).players;
export const spots = async () => (await known()).spots; // solved and kept: looked at and trained with, not played
export const small = async () => (await known()).small; // games that are solved here

export function chooser(names, chosen, words, changed) {
  const list = make("select", { "aria-label": words, onchange: (event) => changed(event.target.value) });
  for (const name of names) list.append(make("option", { value: name, selected: name === chosen }, name));
  return make("label", {}, words, list);
}

// Public cards to choose, by pressing them: `count` of the whole deck.
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
  return make("div", { class: "deck", style: `grid-template-columns: repeat(${ranks.length}, auto)` }, rows.flat());
}
