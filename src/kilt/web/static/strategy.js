// The strategy room: walk through the betting, and see any player's strategy for every hand.
import { go, link } from "./app.js";
import { WAYS, grid, legend, paints, swatch, worth } from "./grid.js";
import { Expected, ask, card, chips, chooser, deckOf, make, percent, players, redraw, spots, suited } from "./tools.js";

export async function enter(main, at, here) {
  const kept = await spots();
  const names = [...(await players()), ...kept];
  const player = at.player || names[0];
  const history = at.history || "";
  const board = at.board || "";
  const both = [player, ...(at.with ? [at.with] : [])];
  const views = await Promise.all(both.map((name) => look(name, history, board)));
  if (!here()) return;
  const view = views.find((each) => each.state !== "failed") || views[0];
  const move = (changes) => go("strategy", { player, history, board, with: at.with, cells: at.cells, ...changes });
  const panels = views.map((each, n) => make("section", { class: "panel", "data-player": both[n] }, panel(each, both[n], at, move)));
  redraw(
    main,
    make("h1", {}, "Strategy"),
    make(
      "div",
      { class: "bar" },
      chooser(names, player, "player", (name) => move({ player: name, history: "", board: "", hand: "", with: "" })),
      chooser(["—", ...(view.spot ? kept : names.filter((name) => !kept.includes(name)))], at.with || "—", "compare with", (name) => move({ with: name === "—" ? "" : name })),
      view.private === 2 ? chooser(Object.keys(WAYS), at.cells || "by reach", "cells", (way) => move({ cells: way, hand: at.hand })) : "",
    ),
    view.state === "failed" ? "" : crumbs(view, { player, board, with: at.with, cells: at.cells }),
    view.state === "failed" ? "" : shown(view),
    view.state === "cards" ? dealing(view, (cards) => move(view.spot ? { history: `${history} / ${cards}` } : { history: history + "/", board: view.board.join("") + cards })) : "",
    make("div", { class: "pair" }, panels),
  );
  // the values of actions take longer than the strategy: they are requested only if shown, and added when they arrive
  views.forEach(async (each, n) => {
    if (!waits(each, at.hand)) return;
    const found = await ask(`api/values?${new URLSearchParams({ player: both[n], history, board })}`).catch(() => null);
    if (found) value(each, found.hands);
    each.told = true;
    if (here()) told(panels[n], each, both[n], at);
  });
}

// Update only the elements with values once these arrive, so that no button disappears under a finger.
function told(place, view, player, at) {
  const cell = view.cells.find((each) => each.name === at.hand);
  if (view.private === 1) place.querySelector(".beside > .scroll").replaceWith(grid(view));
  else if (cell) place.querySelector(".detail").replaceWith(detail(view, cell, player, at));
}

// A player's strategy at a position, or the reason why it is unknown.
async function look(player, history, board) {
  try {
    return await ask(`api/strategy?${new URLSearchParams({ player, history, board })}`);
  } catch (error) {
    if (!(error instanceof Expected)) throw error;
    return { state: "failed", title: error.message };
  }
}

// Whether the values of actions have not arrived yet.
const waits = (view, hand) => view.state === "decision" && view.ev_known && !view.told && Boolean(hand || view.private === 1);

function value(view, hands) {
  for (const cell of view.cells) {
    cell.each = hands.filter((one) => one.cell === cell.name);
    const whole = cell.each.reduce((sum, one) => sum + one.weight, 0);
    if (!(whole > 0)) continue;
    const mean = (what) => view.actions.map((_, at) => cell.each.reduce((sum, one) => sum + one.weight * (one[what]?.[at] || 0), 0) / whole);
    [cell.values, cell.margins] = [mean("values"), mean("margins")];
  }
}

function crumbs(view, at) {
  const steps = [{ history: "", words: "start", first: true }, ...view.path.map((step, n) => ({ ...step, after: (view.path[n + 1] || view).history }))];
  return make(
    "ol",
    { class: "crumbs", "aria-label": "path to this decision" },
    steps.map((step) => {
      const words = step.first ? "start" : step.seat < 0 ? step.words : `${step.name} ${step.words}`;
      return make("li", {}, make("a", { href: link("strategy", { ...at, history: step.first ? "" : step.after }) }, words));
    }),
  );
}

function shown(view) {
  const cards = view.board.map(card);
  return make("div", { class: "bar" }, make("strong", {}, view.title), make("span", { class: "soft" }, `${view.round} · pot ${chips(view.pot)}`), cards.length ? make("span", { class: "cards" }, cards) : "");
}

function dealing(view, dealt) {
  let chosen = [];
  const place = make("section", { class: "panel" });
  const draw = () => {
    const rest = view.cards - chosen.length;
    place.replaceChildren(
      make("h2", {}, rest > 0 ? `choose ${rest} card${rest > 1 ? "s" : ""} of the board` : "continue"),
      deckOf(view, view.board, chosen, (cards) => {
        chosen = cards.slice(-view.cards);
        if (chosen.length === view.cards) dealt(chosen.join(""));
        else draw();
      }),
      make("button", { onclick: () => dealt(drawn(view)) }, "random cards"),
    );
  };
  draw();
  return place;
}

function drawn(view) {
  const deck = [...view.ranks].flatMap((rank) => [...view.suits].map((suit) => rank + suit)).filter((name) => !view.board.includes(name));
  return Array.from({ length: view.cards }, () => deck.splice(Math.floor(Math.random() * deck.length), 1)[0]).join("");
}

function panel(view, name, at, move) {
  if (view.state !== "decision") return [make("h2", {}, name), make("p", { class: view.state === "failed" ? "failure" : "", role: view.state === "failed" ? "alert" : null }, view.title)];
  const cell = view.cells.find((each) => each.name === at.hand);
  return [
    make("h2", {}, name),
    view.strategy ? make("p", { class: "soft strategy" }, view.strategy) : "",
    legend(view, (after) => move({ history: after, hand: "" })),
    view.worth ? make("p", { class: "soft" }, `EV: out of position ${worth(view.worth[0])}, in position ${worth(view.worth[1])} chips`) : "",
    make(
      "div",
      { class: "beside" },
      grid(view, at.hand, (chosen) => move({ hand: chosen === at.hand ? "" : chosen }), at.cells),
      cell ? detail(view, cell, name, at) : make("p", { class: "soft" }, "press an action to continue", view.private === 2 ? ", a hand to see its numbers" : ""),
    ),
    view.ev_known ? make("a", { class: "train", href: link("train", { player: name, history: view.history, board: view.spot ? "" : view.board.join("") }) }, "train this decision") : "",
  ];
}

// If many boards may follow, the value of a hand is estimated on request.
function estimating(view, cell, player, at, place) {
  const button = make("button", { class: "estimate" }, "estimate its EV");
  button.addEventListener("click", async () => {
    [button.disabled, button.textContent] = [true, "sampling boards …"];
    const asked = new URLSearchParams({ player, history: view.history, board: view.board.join(""), cell: cell.name });
    try {
      value(view, (await ask(`api/values?${asked}`)).hands);
      if (place().isConnected) place().replaceWith(detail(view, cell, player, at));
    } catch (error) {
      if (!(error instanceof Expected)) throw error;
      button.replaceWith(make("p", { class: "soft" }, error.message));
    }
  });
  return button;
}

function detail(view, cell, player, at) {
  const colours = paints(view.actions);
  const within = (n) => (cell.margins?.[n] ? ` ± ${worth(cell.margins[n])}` : "");
  const ev = (n) => (cell.values ? `EV ${worth(cell.values[n])}${within(n)}` : waits(view, at.hand) ? "EV …" : "");
  const row = (action, n) => make("tr", {}, make("td", {}, swatch(colours[n])), make("td", {}, action.words), make("td", { class: "number" }, percent(cell.shares[n])), make("td", { class: "number" }, ev(n)));
  const suits = (one) => make("tr", {}, make("td", {}, one.hand.match(/../g).map(suited).join("")), one.shares.map((share, n) => make("td", { class: "number" }, `${percent(share)} `, make("span", { class: "soft" }, worth(one.values[n])))));
  const place = make(
    "div",
    { class: "detail" },
    make("h2", {}, `${cell.name}: ${cell.hands} hand${cell.hands > 1 ? "s" : ""}, reach ${percent(cell.reach)}`),
    buckets(view, cell, player),
    make("div", { class: "scroll" }, make("table", {}, make("tbody", {}, view.actions.map(row)))),
    cell.each?.length > 1 ? make("div", { class: "scroll" }, make("table", { class: "each" }, make("thead", {}, make("tr", {}, make("th", {}, "hand"), view.actions.map((action) => make("th", { class: "number" }, action.words)))), make("tbody", {}, cell.each.map(suits)))) : "",
    make("p", { class: "soft" }, priced(view, cell, at.hand)),
    view.ev_known || cell.values ? "" : estimating(view, cell, player, at, () => place),
  );
  return place;
}

function priced(view, cell, hand) {
  if (waits(view, hand)) return "computing the EV of actions …";
  if (!cell.values) return view.ev_known ? "the EV is unknown: no player reaches this decision with the hand" : "";
  return `EV: expected chips from this decision on, if both players then follow this strategy; a fold is 0; ${cell.margins?.some(Boolean) ? "estimated on sampled boards, with 95% intervals" : "exact"}`;
}

// The buckets of a cell's hands, as links.
function buckets(view, cell, player) {
  if (!cell.buckets?.length) return "";
  const to = (bucket) => link("abstraction", { player, board: view.board.join(""), hand: cell.name, bucket: String(bucket), seat: view.seat ? String(view.seat) : "" });
  return make("p", { class: "buckets" }, `bucket${cell.buckets.length > 1 ? "s" : ""} `, cell.buckets.map(([bucket, hands], n) => [n ? ", " : "", make("a", { href: to(bucket) }, String(bucket)), cell.buckets.length > 1 ? ` (${hands} hand${hands > 1 ? "s" : ""})` : ""]).flat());
}
