// The trainer: one decision, dealt repeatedly; each answer is scored by its EV below the best one.
import { go, link } from "./app.js";
import { paints, swatch } from "./grid.js";
import { ask, behind, card, chips, chooser, fixed, make, percent, redraw, small, spots } from "./tools.js";

const GOOD = 0.005; // share of the pot: smaller losses count as none

export async function enter(main, at, here) {
  const names = [...(await spots()), ...(await small())];
  const player = at.player || names[0];
  const asked = new URLSearchParams({ player, history: at.history || "", board: at.board || "" });
  const bar = make(
    "div",
    { class: "bar" },
    chooser(names.includes(player) ? names : [player, ...names], player, "spot", (name) => go("train", { player: name })),
    make("a", { href: link("strategy", { player, history: at.history, board: at.board }) }, "choose another decision"),
    make("a", { href: link("play", {}) }, "back to the table"),
  );
  main.replaceChildren(make("h1", {}, "Trainer"), bar);
  const view = await ask(`api/strategy?${asked}`);
  if (!here()) return;
  if (view.state !== "decision" || !view.ev_known) {
    main.append(make("p", { class: "soft" }, view.state === "decision" ? "The EV of actions is unknown here: choose a decision of a spot, of a small game, or of the last rounds." : "No player acts here: choose a decision."));
    return;
  }
  const { hands } = await ask(`api/values?${asked}`);
  if (!here()) return;
  const score = { asked: 0, good: 0, lost: 0 };
  const place = make("div", { class: "columns" });
  main.append(place);
  let dealt = draw(hands);
  let taken = null;

  function answer(number) {
    if (taken !== null) return;
    taken = number;
    const lost = Math.max(...dealt.values) - dealt.values[number];
    score.asked += 1;
    score.lost += lost;
    if (lost <= GOOD * view.pot) score.good += 1;
    show();
  }

  function next() {
    if (taken === null) return;
    [dealt, taken] = [draw(hands), null];
    show();
  }

  function show() {
    if (here()) redraw(place, table(view, dealt, taken, answer, next), results(view, dealt, taken, score));
  }

  const keys = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("select, input, textarea")) return;
    const number = Number(event.key) - 1;
    if (taken === null && number >= 0 && number < view.actions.length) answer(number);
    else if (taken !== null && event.key.toLowerCase() === "n") next();
    else return;
    event.preventDefault();
  };
  addEventListener("keydown", keys);
  show();
  return () => removeEventListener("keydown", keys);
}

// A random hand, with the probability of reaching the decision.
function draw(hands) {
  let left = Math.random() * hands.reduce((sum, hand) => sum + hand.weight, 0);
  return hands.find((hand) => (left -= hand.weight) <= 0) || hands.at(-1);
}

function table(view, dealt, taken, answer, next) {
  const way = view.path.map((step) => (step.seat < 0 ? step.words : `${step.name} ${step.words}`)).join(", ");
  const buttons = view.actions.map((action, number) => make("button", { class: "main", "data-answer": action.label, disabled: taken !== null, onclick: () => answer(number) }, `${action.words} `, make("kbd", {}, String(number + 1))));
  return make(
    "div",
    {},
    make(
      "section",
      { class: "felt", "aria-label": "the decision" },
      make("div", {}, make("div", { class: "pot" }, way || "first action of the hand")),
      make("div", {}, make("div", { class: "cards", id: "board" }, view.board.map(card)), make("div", { class: "pot" }, `pot ${chips(view.pot)}`)),
      make("div", {}, make("div", { class: "cards", id: "mine" }, dealt.hand.match(/../g).map(card)), make("div", { class: "pot" }, `you: ${view.title}`)),
    ),
    make("div", { class: "actions" }, buttons, make("button", { id: "next", disabled: taken === null, onclick: next }, "next hand ", make("kbd", {}, "n"))),
  );
}

function results(view, dealt, taken, score) {
  const colours = paints(view.actions);
  const less = taken === null ? 0 : behind(dealt.values, taken, 2);
  const rows = view.actions.map((action, n) => make("tr", { class: n === taken ? "mine" : "" }, make("td", {}, swatch(colours[n]), ` ${action.words}`), make("td", { class: "number" }, percent(dealt.shares[n])), make("td", { class: "number" }, fixed(dealt.values[n], 2))));
  const mean = score.asked ? score.lost / score.asked : 0;
  return make(
    "aside",
    { class: "panel", "aria-live": "polite" },
    make("h2", {}, "EV"),
    taken === null
      ? make("p", { class: "soft" }, "press an action, or its number")
      : make("div", { id: "verdict", class: "scroll" }, make("p", {}, less > 0 ? `${fixed(less, 2)} chips less than the highest EV` : "no action has a higher EV"), make("table", {}, make("thead", {}, make("tr", {}, ["action", "strategy", "EV"].map((word, n) => make("th", { class: n ? "number" : "" }, word)))), make("tbody", {}, rows))),
    make("p", { class: "soft", id: "meaning" }, "EV: expected chips from this decision on, if both players then follow the strategy. A fold is 0."),
    make("h2", {}, "score"),
    make("p", { id: "trained" }, `${score.asked} decision${score.asked === 1 ? "" : "s"}, ${score.good} as good as the best`, make("br"), make("span", { class: "soft" }, `${mean.toFixed(2)} chips lost a decision (${percent(mean / view.pot)} of the pot)`)),
  );
}
