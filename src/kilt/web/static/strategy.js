// The strategy room: walk the betting of any player, and see what they do with every hand.
import { go, link } from "./app.js";
import { grid, legend, paints, worth } from "./grid.js";
import { ask, card, chips, chooser, deckOf, make, percent, players, spots, suited } from "./tools.js";

export async function enter(main, at, here) {
  const kept = await spots();
  const names = [...(await players()), ...kept];
  const player = at.player || names[0];
  const history = at.history || "";
  const board = at.board || "";
  const both = [player, ...(at.with ? [at.with] : [])];
  const views = await Promise.all(both.map((name) => ask(`api/strategy?${new URLSearchParams({ player: name, history, board })}`)));
  await Promise.all(views.map((view, n) => price(view, both[n], { history, board, hand: at.hand })));
  if (!here()) return;
  const view = views[0];
  const move = (changes) => go("strategy", { player, history, board, with: at.with, ...changes });
  main.replaceChildren(
    make("h1", {}, "Strategy"),
    make(
      "div",
      { class: "bar" },
      chooser(names, player, "player", (name) => move({ player: name, history: "", board: "", hand: "", with: "" })),
      chooser(["—", ...(view.spot ? kept : names.filter((name) => !kept.includes(name)))], at.with || "—", "beside", (name) => move({ with: name === "—" ? "" : name })),
    ),
    crumbs(view, { player, board, with: at.with }),
    shown(view),
    view.state === "cards" ? dealing(view, board, (cards) => move(view.spot ? { history: `${history} / ${cards}` } : { history: history + "/", board: view.board.join("") + cards })) : "",
    make("div", { class: "pair" }, views.map((each, n) => panel(each, both[n], at.hand || "", move, history))),
  );
}

// What actions are worth takes longer than what is done: it is asked for where it is shown.
async function price(view, player, { history, board, hand }) {
  if (view.state !== "decision" || !view.ev_known || !(hand || view.private === 1)) return;
  value(view, (await ask(`api/values?${new URLSearchParams({ player, history, board })}`)).hands);
}

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
    { class: "crumbs", "aria-label": "the way here" },
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

function dealing(view, board, dealt) {
  let chosen = [];
  const place = make("section", { class: "panel" });
  const draw = () => {
    const rest = view.cards - chosen.length;
    place.replaceChildren(
      make("h2", {}, rest > 0 ? `choose ${rest} card${rest > 1 ? "s" : ""} of the board` : "go on"),
      deckOf(view, view.board, chosen, (cards) => {
        chosen = cards.slice(-view.cards);
        if (chosen.length === view.cards) dealt(chosen.join(""));
        else draw();
      }),
      make("button", { onclick: () => dealt(drawn(view)) }, "any cards"),
    );
  };
  draw();
  return place;
}

function drawn(view) {
  const deck = [...view.ranks].flatMap((rank) => [...view.suits].map((suit) => rank + suit)).filter((name) => !view.board.includes(name));
  return Array.from({ length: view.cards }, () => deck.splice(Math.floor(Math.random() * deck.length), 1)[0]).join("");
}

function panel(view, name, hand, move, history) {
  if (view.state !== "decision") return make("section", { class: "panel", "data-player": name }, make("h2", {}, name), make("p", {}, view.title));
  const cell = view.cells.find((each) => each.name === hand);
  return make(
    "section",
    { class: "panel", "data-player": name },
    make("h2", {}, name),
    legend(view, (after) => move({ history: after, hand: "" })),
    view.worth ? make("p", { class: "soft" }, `EV: out of position ${worth(view.worth[0])}, in position ${worth(view.worth[1])} chips`) : "",
    make(
      "div",
      { class: "beside" },
      grid(view, hand, (chosen) => move({ hand: chosen === hand ? "" : chosen })),
      cell ? detail(view, cell, name, history) : make("p", { class: "soft" }, "press an action to go on", view.private === 2 ? ", a hand to see its numbers" : ""),
    ),
    view.ev_known ? make("a", { class: "train", href: link("train", { player: name, history, board: view.spot ? "" : view.board.join("") }) }, "train this decision") : "",
  );
}

// Where many boards are to come, what a hand is worth is estimated when somebody asks.
function estimating(view, cell, player, history, place) {
  const button = make("button", { class: "estimate" }, "estimate what it is worth");
  button.addEventListener("click", async () => {
    [button.disabled, button.textContent] = [true, "boards are drawn …"];
    const asked = new URLSearchParams({ player, history, board: view.board.join(""), cell: cell.name });
    const found = await ask(`api/values?${asked}`).catch(() => null);
    if (!found) return (button.textContent = "not known here");
    value(view, found.hands);
    if (place().isConnected) place().replaceWith(detail(view, cell, player, history));
  });
  return button;
}

function detail(view, cell, player, history) {
  const colours = paints(view.actions);
  const within = (n) => (cell.margins?.[n] ? ` ± ${worth(cell.margins[n])}` : "");
  const place = make(
    "div",
    { class: "detail" },
    make("h2", {}, `${cell.name}: ${cell.hands} hand${cell.hands > 1 ? "s" : ""}, comes here with ${percent(cell.reach)}`),
    make("table", {}, make("tbody", {}, view.actions.map((action, n) => make("tr", {}, make("td", {}, make("span", { class: "swatch", style: `display: inline-block; background: ${colours[n].fill}` })), make("td", {}, action.words), make("td", { class: "number" }, percent(cell.shares[n])), cell.values ? make("td", { class: "number" }, `EV ${worth(cell.values[n])}${within(n)}`) : "")))),
    cell.each?.length > 1 ? make("table", { class: "each" }, make("tbody", {}, cell.each.map((one) => make("tr", {}, make("td", {}, one.hand.match(/../g).map(suited).join("")), one.shares.map((share, n) => make("td", { class: "number" }, `${percent(share)} `, make("span", { class: "soft" }, worth(one.values[n])))))))) : "",
    cell.values?.length ? make("p", { class: "soft" }, cell.margins?.some(Boolean) ? "EV: chips from here on, if both go on so; estimated on boards that were drawn, 95% interval" : "EV: chips from here on, if both go on so; exact") : "",
    view.ev_known || cell.values ? "" : estimating(view, cell, player, history, () => place),
  );
  return place;
}
