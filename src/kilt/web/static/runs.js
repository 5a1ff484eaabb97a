// The runs room: what is solving now and what was solved; curves grow while one looks.
import { go, link } from "./app.js";
import { ask, make } from "./tools.js";

const EXAMPLE = `game = "royal.limit.2p"
cards = "lossless"

[solver]
algorithm = "cfr+"
iterations = 200
`;

export async function enter(main, at, here) {
  const { runs, control } = await ask("api/runs");
  if (!here()) return;
  const list = make(
    "div",
    { class: "panel scroll" },
    make("table", {}, make("thead", {}, make("tr", {}, ["run", "game", "algorithm", "state", "iterations", "exploitability"].map((word) => make("th", {}, word)))), make("tbody", {}, runs.map(row))),
    runs.length ? "" : make("p", { class: "soft" }, "No runs are here yet: kilt solve CONFIG --out runs/mine makes one."),
  );
  const chosen = at.run ? runs.find((run) => run.name === at.run) : null;
  const detail = make("section", { class: "panel", id: "run", hidden: !at.run });
  main.replaceChildren(make("h1", {}, "Runs"), list, detail, control ? form() : make("p", { class: "soft" }, "To start and stop runs here, start the server with --control."));
  if (!at.run) return;
  if (chosen?.error) return detail.replaceChildren(make("h2", {}, at.run), make("p", {}, chosen.error));
  const events = new EventSource(`api/watch?${new URLSearchParams({ run: at.run })}`);
  events.onmessage = (event) => show(detail, at.run, JSON.parse(event.data), control, chosen);
  events.onerror = () => detail.querySelector("h2") || detail.replaceChildren(make("h2", {}, at.run), make("p", {}, "there is no such run"));
  return () => events.close();
}

function row(run) {
  const name = make("a", { href: link("runs", { run: run.name }) }, run.name);
  if (run.error) return make("tr", {}, make("td", {}, name), make("td", { colspan: 5 }, run.error));
  const state = run.working ? "at work" : run.solved ? "solved" : run.ended ? "ended" : "stopped or at work elsewhere";
  return make("tr", { "data-run": run.name }, make("td", {}, name), make("td", {}, run.game), make("td", {}, run.algorithm), make("td", {}, make("span", { class: "state" }, state)), make("td", { class: "number" }, run.last ? run.last.iterations.toLocaleString("en") : "0"), make("td", { class: "number" }, run.last?.exploitability?.toPrecision(4) ?? "—"));
}

function show(place, name, steps, control, run) {
  const last = steps.at(-1);
  place.hidden = false;
  place.replaceChildren(
    make("h2", {}, name),
    make("p", { id: "stands" }, last ? `${last.iterations.toLocaleString("en")} iterations in ${last.seconds.toFixed(1)} s${last.exploitability === null ? "" : `, exploitability ${last.exploitability.toPrecision(4)} chips per game`}` : "nothing is measured yet"),
    curve(steps),
    make(
      "div",
      { class: "bar" },
      run?.solved ? make("a", { href: link("strategy", { player: name }) }, "look at its strategy") : "",
      control ? make("button", { id: "stop", onclick: () => ask(`api/stop?${new URLSearchParams({ run: name })}`, {}) }, "stop") : "",
      control ? make("button", { id: "resume", onclick: () => ask(`api/resume?${new URLSearchParams({ run: name })}`, {}) }, "resume") : "",
    ),
  );
}

const power = (at) => `10${[...String(at)].map((letter) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[letter] || "⁻").join("")}`;

// Exploitability over iterations, both on logarithmic scales.
function curve(steps) {
  const points = steps.filter((step) => step.iterations > 0 && step.exploitability > 0).map((step) => [Math.log10(step.iterations), Math.log10(step.exploitability)]);
  if (points.length < 2) return make("p", { class: "soft" }, "a curve is drawn from the second measurement on");
  const [xs, ys] = [points.map((point) => point[0]), points.map((point) => point[1])];
  const [left, right, low, high] = [Math.floor(Math.min(...xs)), Math.ceil(Math.max(...xs)), Math.floor(Math.min(...ys)), Math.ceil(Math.max(...ys))];
  const x = (value) => 60 + (520 * (value - left)) / (right - left || 1);
  const y = (value) => 250 - (230 * (value - low)) / (high - low || 1);
  const lines = [];
  for (let at = left; at <= right; at += 1) lines.push(make("svg:line", { class: "axis", x1: x(at), x2: x(at), y1: 20, y2: 250 }), make("svg:text", { x: x(at) - 8, y: 266 }, power(at)));
  for (let at = low; at <= high; at += 1) lines.push(make("svg:line", { class: "axis", x1: 60, x2: 580, y1: y(at), y2: y(at) }), make("svg:text", { x: 4, y: y(at) + 4 }, power(at)));
  return make("svg:svg", { class: "chart", viewBox: "0 0 600 290", role: "img", "aria-label": "exploitability over iterations" }, lines, make("svg:path", { class: "curve", d: points.map(([a, b], n) => `${n ? "L" : "M"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join("") }), make("svg:text", { x: 270, y: 286 }, "iterations"));
}

function form() {
  const name = make("input", { id: "name", placeholder: "name", "aria-label": "name of the run" });
  const config = make("textarea", { id: "config", "aria-label": "configuration", spellcheck: "false" });
  config.value = EXAMPLE;
  const said = make("p", { id: "estimate", class: "soft" }, "");
  const asked = () => ({ name: name.value || "run", config: config.value });
  return make(
    "section",
    { class: "panel" },
    make("h2", {}, "a new run"),
    make("div", { class: "bar" }, name),
    config,
    said,
    make(
      "div",
      { class: "bar" },
      make("button", { id: "plan", onclick: async () => { const found = await ask("api/plan", asked()); said.textContent = `${found.entries.toLocaleString("en")} entries, ${(found.memory / 1e6).toFixed(0)} MB of memory, ${(found.disk / 1e6).toFixed(0)} MB on disk${found.fits ? "" : ": more than there is"}`; } }, "what would it take?"),
      make("button", { class: "main", id: "start", onclick: async () => { const { name: run } = await ask("api/runs", asked()); setTimeout(() => go("runs", { run }), 1500); } }, "start"),
    ),
  );
}
