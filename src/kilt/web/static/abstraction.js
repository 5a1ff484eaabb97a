// The abstraction room: the buckets of the hands on a board.
import { go } from "./app.js";
import { ask, bucketed, card, chooser, deckOf, make, percent, redraw, square, suited } from "./tools.js";

export async function enter(main, at, here) {
  const known = await bucketed();
  const player = at.player || known[0];
  const names = known.includes(player) ? known : [...known, player]; // the player named in the address stays in the list
  const board = (at.board || "").match(/../g) || [];
  const move = (changes) => go("abstraction", { player, board: board.join(""), bucket: at.bucket, hand: at.hand, seat: at.seat, ...changes });
  const head = [make("h1", {}, "Abstraction"), make("div", { class: "bar" }, chooser(names, player, "player", (name) => move({ player: name, board: "", bucket: "", hand: "", seat: "" })))];
  const asked = { player, board: at.board || "", seat: at.seat || "0" };
  const bucket = at.bucket ? Number(at.bucket) : null;
  const look = (what, more) => ask(`api/${what}?${new URLSearchParams({ ...asked, ...more })}`);
  let view, sorted, inside;
  try {
    [view, sorted, inside] = await Promise.all([look("abstraction"), look("classes"), bucket === null ? null : look("bucket", { number: bucket })]);
  } catch (error) {
    if (here()) main.replaceChildren(...head);
    throw error;
  }
  if (!here()) return;
  if (view.seats > 1) head[1].append(chooser(["0", "1"], asked.seat, "seat", (seat) => move({ seat, bucket: "" })));
  const used = [...new Set(view.hands.map((hand) => hand.bucket))];
  redraw(
    main,
    ...head,
    make("p", {}, `${view.cards}: ${view.buckets.toLocaleString("en")} buckets ${view.round === "preflop" ? "" : "on the "}${view.round}, ${used.length.toLocaleString("en")} of them ${view.board.length ? "on this board" : "in use"}`),
    choosing(view, board, at, move),
    make("div", { class: "columns" }, buckets(view, bucket, at.hand, move), make("aside", { class: "panel" }, falls(view, at.hand, bucket, move), members(view, bucket, inside, move))),
    classes(sorted, move),
  );
}

function choosing(view, board, at, move) {
  let chosen = board;
  const place = make("section", { class: "panel" });
  const draw = () =>
    place.replaceChildren(
      make("h2", {}, `the board: choose ${view.sizes.slice(0, -1).join(", ")} or ${view.sizes.at(-1)} cards`),
      make("div", { class: "cards left" }, chosen.map(card), make("button", { id: "clear", disabled: !chosen.length, onclick: () => move({ board: "", bucket: "" }) }, "no cards")),
      deckOf(view, [], chosen, (cards) => {
        chosen = cards.slice(0, view.sizes.at(-1));
        if (view.sizes.includes(chosen.length)) move({ board: chosen.join(""), bucket: "", hand: at.hand });
        else draw();
      }),
    );
  draw();
  return place;
}

// A colour for each bucket: by strength if known, so that buckets of similar strength have similar colours.
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

function buckets(view, bucket, chosen, move) {
  const colour = shade(view);
  const cells = new Map();
  for (const hand of view.hands) cells.set(hand.cell, [...(cells.get(hand.cell) || []), hand]);
  const ranks = view.private === 2 ? [...view.ranks] : [];
  if (!ranks.length) return make("div", { class: "panel" }, make("table", {}, make("tbody", {}, view.hands.map((hand) => make("tr", {}, make("td", {}, suited(hand.name)), make("td", {}, String(hand.bucket)))))));
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
      grid.append(make("button", { class: "cell", title: words, "aria-label": words, "aria-pressed": String(name === chosen), "data-hand": name, onclick: () => move({ hand: name, bucket: String(found[0]) }) }, picture, make("span", {}, name, make("small", {}, found.length > 1 ? `${found[0]} …` : String(found[0])))));
    }),
  );
  return make("section", { class: "panel" }, square(grid, ranks.length), make("p", { class: "soft" }, view.board.length ? "blue: weak on this board, red: strong; the number is the bucket" : "hands of the same colour share a bucket; the number is the bucket"));
}

const named = (hand) => hand.name.match(/../g).map(suited).join("");

// The buckets of the hands of a cell on this board, suit by suit.
function falls(view, cell, bucket, move) {
  const hands = view.hands.filter((hand) => hand.cell === cell);
  if (!hands.length) return make("p", { class: "soft" }, "press a hand to see its bucket on this board, and the hands that share it");
  const row = (hand) => make("tr", { class: hand.bucket === bucket ? "mine" : "" }, make("td", {}, named(hand)), make("td", { class: "number" }, hand.strength === null ? "" : percent(hand.strength)), make("td", {}, make("button", { onclick: () => move({ bucket: String(hand.bucket) }) }, String(hand.bucket))));
  return make("div", { id: "falls", class: "scroll" }, make("h2", {}, `buckets of ${cell}`), make("table", {}, make("thead", {}, make("tr", {}, make("th", {}, "hand"), make("th", { class: "number" }, "strength"), make("th", {}, "bucket"))), make("tbody", {}, hands.map(row))));
}

function members(view, bucket, inside, move) {
  if (bucket === null) return "";
  const hands = view.hands.filter((hand) => hand.bucket === bucket);
  const known = hands.filter((hand) => hand.strength !== null).map((hand) => hand.strength);
  return make(
    "div",
    { id: "bucket" },
    make("h2", {}, `bucket ${bucket}: ${hands.length} hands on this board, ${percent(inside.share)} of all deals`),
    make("p", {}, "final hand strength of its hands, over all boards", histogram(inside.strength)),
    known.length ? make("p", {}, `on this board: ${percent(Math.min(...known))} to ${percent(Math.max(...known))}`) : "",
    make("details", {}, make("summary", {}, "its hands on this board"), make("p", {}, hands.map((hand) => `${named(hand)} `))),
    inside.nearest.length ? make("h2", {}, "the nearest buckets") : "",
    inside.nearest.length ? make("p", { class: "soft" }, "earth mover's distance of the histograms, in hand strength") : "",
    make("div", { class: "near" }, inside.nearest.map((other) => make("button", { "data-bucket": other.bucket, onclick: () => move({ bucket: String(other.bucket), hand: "" }) }, `${other.bucket}: ${other.distance.toFixed(3)}`, histogram(other.strength)))),
    make("button", { onclick: () => move({ bucket: "", hand: "" }) }, "all buckets"),
  );
}

// Shares of hands over bins of hand strength from 0 to 1.
function histogram(bins) {
  const most = Math.max(...bins, 1e-9);
  return make("svg:svg", { class: "chart", viewBox: "0 0 200 62", role: "img", "aria-label": "histogram of hand strength from 0 to 1" }, bins.map((share, at) => make("svg:rect", { x: 10 * at + 1, y: 50 - (48 * share) / most, width: 8, height: (48 * share) / most, fill: "var(--accent)" })), make("svg:text", { x: 0, y: 61 }, "0"), make("svg:text", { x: 192, y: 61 }, "1"));
}

// Classes of boards, as cards, with the nearest classes by the distances used for clustering.
function classes(sorted, move) {
  if (!sorted.classes.length) return make("p", { class: "soft" }, "This abstraction has no classes of boards: hands are clustered over all boards together.");
  const row = (one) =>
    make(
      "tr",
      { class: one.number === sorted.here ? "mine" : "", "data-class": one.number },
      make("td", { class: "number" }, `${one.number}${one.number === sorted.here ? " (here)" : ""}`),
      make("td", { class: "number" }, percent(one.share)),
      make("td", {}, make("div", { class: "boards" }, one.boards.map((board) => make("button", { class: "small", title: "look at this board", onclick: () => move({ board: board.join(""), bucket: "" }) }, board.map(card))))),
      make("td", {}, one.words),
      make("td", {}, one.nearest.map((other) => `${other.number} (${other.distance.toFixed(3)})`).join(", ")),
    );
  return make("section", { class: "panel scroll", id: "classes" }, make("h2", {}, `${sorted.classes.length} classes of boards`), make("table", {}, make("thead", {}, make("tr", {}, ["class", "of deals", "examples", "description", "nearest (distance)"].map((word) => make("th", {}, word)))), make("tbody", {}, sorted.classes.map(row))));
}
