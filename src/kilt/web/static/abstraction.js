// The abstraction room: into which buckets the hands of a board fall.
import { go } from "./app.js";
import { ask, card, chooser, deckOf, make, percent, players, suited } from "./tools.js";

export async function enter(main, at, here) {
  const names = (await players()).filter((name) => !name.startsWith("always-"));
  const player = at.player || names[0];
  const board = (at.board || "").match(/../g) || [];
  const move = (changes) => go("abstraction", { player, board: board.join(""), bucket: at.bucket, ...changes });
  main.replaceChildren(make("h1", {}, "Abstraction"), make("div", { class: "bar" }, chooser(names, player, "player", (name) => move({ player: name, board: "", bucket: "" }))));
  const view = await ask(`api/abstraction?${new URLSearchParams({ player, board: at.board || "" })}`);
  if (!here()) return;
  const bucket = at.bucket ? Number(at.bucket) : null;
  const used = [...new Set(view.hands.map((hand) => hand.bucket))];
  main.append(
    make("p", {}, `${view.cards}: ${view.buckets.toLocaleString("en")} buckets in the ${view.round}, ${used.length} of them on this board`),
    choosing(view, board, move),
    make("div", { class: "columns" }, square(view, bucket, move), members(view, bucket, move)),
  );
}

function choosing(view, board, move) {
  let chosen = board;
  const place = make("section", { class: "panel" });
  const draw = () =>
    place.replaceChildren(
      make("h2", {}, `board: ${view.sizes.join(", ")} cards`),
      make("div", { class: "cards", style: "justify-content: flex-start" }, chosen.map(card)),
      deckOf(view, [], chosen, (cards) => {
        chosen = cards.slice(0, view.sizes.at(-1));
        if (view.sizes.includes(chosen.length)) move({ board: chosen.join(""), bucket: "" });
        else draw();
      }),
    );
  draw();
  return place;
}

// A colour for each bucket: by strength where it is known, so that neighbours in the order look alike.
function shade(view) {
  const sums = new Map();
  for (const hand of view.hands) {
    const [sum, count] = sums.get(hand.bucket) || [0, 0];
    sums.set(hand.bucket, [sum + (hand.strength ?? (hand.bucket * 0.618) % 1), count + 1]);
  }
  return (bucket) => {
    const [sum, count] = sums.get(bucket);
    return `hsl(${Math.round(220 - 220 * (sum / count))} 65% 55%)`;
  };
}

function square(view, bucket, move) {
  const colour = shade(view);
  const cells = new Map();
  for (const hand of view.hands) cells.set(hand.cell, [...(cells.get(hand.cell) || []), hand]);
  const ranks = view.private === 2 ? [...view.ranks] : [];
  if (!ranks.length) return make("div", { class: "panel" }, make("table", {}, make("tbody", {}, view.hands.map((hand) => make("tr", {}, make("td", {}, suited(hand.name)), make("td", {}, `bucket ${hand.bucket}`))))));
  const grid = make("div", { class: "grid", style: `grid-template-columns: repeat(${ranks.length}, 1fr)` });
  ranks.forEach((row, i) =>
    ranks.forEach((column, j) => {
      const name = i === j ? row + row : i < j ? `${row}${column}s` : `${column}${row}o`;
      const hands = cells.get(name);
      if (!hands) return grid.append(make("span", { class: "cell missing" }));
      const picture = make("svg:svg", { viewBox: `0 0 ${hands.length} 1`, preserveAspectRatio: "none", "aria-hidden": "true" });
      hands.forEach((hand, at) => picture.append(make("svg:rect", { x: at, y: 0, width: 1, height: 1, fill: colour(hand.bucket), "fill-opacity": bucket === null || bucket === hand.bucket ? 1 : 0.12 })));
      const found = [...new Set(hands.map((hand) => hand.bucket))];
      const words = `${name}: bucket${found.length > 1 ? "s" : ""} ${found.join(", ")}`;
      grid.append(make("button", { class: "cell", title: words, "aria-label": words, "data-hand": name, onclick: () => move({ bucket: String(found[0]) }) }, picture, make("span", {}, name)));
    }),
  );
  return make("section", { class: "panel" }, grid);
}

function members(view, bucket, move) {
  if (bucket === null) return make("aside", { class: "panel soft" }, "press a hand to see who shares its bucket on this board");
  const hands = view.hands.filter((hand) => hand.bucket === bucket);
  const known = hands.filter((hand) => hand.strength !== null).map((hand) => hand.strength);
  return make(
    "aside",
    { class: "panel" },
    make("h2", {}, `bucket ${bucket}: ${hands.length} hands on this board`),
    known.length ? make("p", {}, `hand strength ${percent(Math.min(...known))} to ${percent(Math.max(...known))}`, histogram(known)) : "",
    make("p", {}, hands.map((hand) => `${suited(hand.name.slice(0, 2))}${hand.name.length > 2 ? suited(hand.name.slice(2)) : ""} `)),
    make("button", { onclick: () => move({ bucket: "" }) }, "all buckets"),
  );
}

function histogram(values) {
  const bins = Array(20).fill(0);
  for (const value of values) bins[Math.min(19, Math.floor(20 * value))] += 1;
  const most = Math.max(...bins);
  return make("svg:svg", { class: "chart", viewBox: "0 0 200 62", role: "img", "aria-label": "histogram of hand strength from 0 to 1" }, bins.map((count, at) => make("svg:rect", { x: 10 * at + 1, y: 50 - (48 * count) / most, width: 8, height: (48 * count) / most, fill: "var(--accent)" })), make("svg:text", { x: 0, y: 61 }, "0"), make("svg:text", { x: 192, y: 61 }, "1"));
}
