// Hand grids: the strategy of every hand, in the squares that players know; a table for games of one private card.
import { fixed, make, percent, square, suited } from "./tools.js";

// Colours of the actions of a decision: fold red, call blue, raises green, darker for larger raises. Hatching distinguishes
// them without colours.
export function paints(actions) {
  const raises = actions.filter((action) => action.kind === "raise");
  return actions.map((action) => {
    if (action.kind !== "raise") return { fill: `var(--${action.kind})`, mark: action.kind };
    const step = raises.length > 1 ? raises.indexOf(action) / (raises.length - 1) : 0.7;
    return { fill: `color-mix(in oklab, var(--raise-high) ${Math.round(100 * step)}%, var(--raise-low))`, mark: "raise" };
  });
}

function hatching(mark) {
  if (mark === "call") return null;
  const path = mark === "fold" ? "M0 4 L4 0" : "M2 0 V4";
  return make("svg:path", { d: path, stroke: "#fff", "stroke-opacity": ".38", "stroke-width": ".6" });
}

let drawn = 0;

// The display modes of a grid: each computes the displayed cell from the data of its hands.
export const WAYS = {
  "by reach": (cell) => cell, // height: probability of reaching the decision with the hand
  "by share": (cell) => ({ ...cell, reach: 1 }),
  "the other's range": (cell) => ({ ...cell, reach: cell.other, shares: [1] }),
};

// A bar split by action; its height is the probability of reaching the decision with the hand.
export function bar(cell, colours) {
  const picture = make("svg:svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none", "aria-hidden": "true" });
  const high = 100 * Math.max(cell.reach > 0 ? 0.06 : 0, Math.min(1, cell.reach));
  let left = 0;
  cell.shares.forEach((share, at) => {
    if (share <= 0) return;
    const box = { x: left, y: 100 - high, width: 100 * share, height: high };
    picture.append(make("svg:rect", { ...box, fill: colours[at].fill }));
    const lines = hatching(colours[at].mark);
    if (lines && high) {
      const id = `hatch-${(drawn += 1)}`;
      picture.append(make("svg:pattern", { id, width: 12, height: 12, patternUnits: "userSpaceOnUse", viewBox: "0 0 4 4" }, lines));
      picture.append(make("svg:rect", { ...box, fill: `url(#${id})` }));
    }
    left += 100 * share;
  });
  return picture;
}

// The colour and the hatching of an action, as in a grid.
export const swatch = (colour) => make("span", { class: "swatch" }, bar({ reach: 1, shares: [1] }, [colour]));

export const worth = (value) => (value === null || value === undefined ? "—" : fixed(value, 2));

// The expected value of a cell under the strategy, in chips from the decision on.
export function mean(cell) {
  if (!cell.values) return null;
  return cell.shares.reduce((sum, share, at) => sum + (share > 0 ? share * cell.values[at] : 0), 0);
}

function words(view, cell) {
  const shares = view.actions.map((action, at) => `${action.words} ${percent(cell.shares[at])}`);
  return `${cell.name}: ${shares.join(", ")}; reach ${percent(cell.reach)}${cell.other === undefined ? "" : `, opponent's reach ${percent(cell.other)}`}${cell.values ? `; EV ${worth(mean(cell))}` : ""}`;
}

export function grid(view, pressed, press, way) {
  const theirs = way === "the other's range";
  const colours = theirs ? [{ fill: "var(--soft)", mark: "call" }] : paints(view.actions);
  if (view.private === 1) return table(view, paints(view.actions));
  const ranks = [...view.ranks];
  const byName = Object.fromEntries(view.cells.map((cell) => [cell.name, cell]));
  const shown = WAYS[way] || WAYS["by reach"];
  const place = make("div", { class: "grid", role: "group", "aria-label": "hands", style: `grid-template-columns: repeat(${ranks.length}, 1fr)` });
  ranks.forEach((row, i) =>
    ranks.forEach((column, j) => {
      const name = i === j ? row + row : i < j ? `${row}${column}s` : `${column}${row}o`;
      const cell = byName[name];
      if (!cell) return place.append(make("span", { class: "cell missing" }));
      place.append(
        make("button", { class: "cell", title: words(view, cell), "aria-label": words(view, cell), "aria-pressed": String(pressed === name), "data-hand": name, onclick: () => press(name) }, bar(shown(cell), colours), make("span", {}, name)),
      );
    }),
  );
  return square(place, ranks.length);
}

function table(view, colours) {
  const priced = view.ev_known; // values are loaded later, but their columns exist from the start
  const value = (cell, at) => (cell.values || view.told ? worth(cell.values?.[at]) : "…");
  const head = make("tr", {}, make("th", {}, "hand"), view.actions.map((action) => make("th", { class: "number" }, action.words)), make("th", { class: "number" }, "reach"), priced ? view.actions.map((action) => make("th", { class: "number" }, `EV: ${action.words}`)) : "", make("th", { style: "width: 25%" }, ""));
  const rows = view.cells.map((cell) =>
    make("tr", { "data-hand": cell.name }, make("td", {}, suited(cell.name)), cell.shares.map((share) => make("td", { class: "number" }, percent(share))), make("td", { class: "number" }, percent(cell.reach)), priced ? view.actions.map((_, at) => make("td", { class: "number" }, value(cell, at))) : "", make("td", { style: "position: relative; height: 1.6rem" }, make("span", { class: "cell", style: "position: absolute; inset: 3px" }, bar({ ...cell, reach: cell.reach > 0 ? 1 : 0 }, colours)))),
  );
  return make("div", { class: "scroll" }, make("table", {}, make("thead", {}, head), make("tbody", {}, rows)));
}

export function legend(view, act) {
  const colours = paints(view.actions);
  return make(
    "ul",
    { class: "legend" },
    view.actions.map((action, at) =>
      make("li", {}, make("button", { "data-label": action.label, onclick: () => act(action.after) }, swatch(colours[at]), `${action.words} `, make("strong", {}, percent(action.share)))),
    ),
    (view.legal || []).map((label) => make("li", {}, make("button", { onclick: () => act(view.history + label) }, `${label === "f" ? "fold" : "call"} 0%`))),
  );
}
