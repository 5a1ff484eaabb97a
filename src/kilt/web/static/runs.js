// The runs room: current and finished runs, with curves that are updated while they are shown.
import { go, link } from "./app.js";
import { ask, make, redraw } from "./tools.js";

const EXAMPLE = `game = "leduc"
cards = "lossless"

[solver]
algorithm = "cfr+"
iterations = 10000
`;

export async function enter(main, at, here) {
  const { runs, control } = await ask("api/runs");
  if (!here()) return;
  const list = make(
    "div",
    { class: "panel scroll" },
    make("table", { id: "runs" }, make("thead", {}, make("tr", {}, ["run", "game", "algorithm", "state", "iterations", "exploitability, chips, before post-processing"].map((word, n) => make("th", { class: n > 3 ? "number" : "" }, word)))), make("tbody", {}, runs.map(row))),
    runs.length ? "" : make("p", { class: "soft" }, "There are no runs yet: start one with kilt solve CONFIG --out runs/mine"),
  );
  const chosen = at.run ? runs.find((run) => run.name === at.run) : null;
  const detail = make("section", { class: "panel", id: "run", hidden: !at.run });
  main.replaceChildren(make("h1", {}, "Runs"), list, detail, control ? form() : make("p", { class: "soft" }, "To start and stop runs here, start the server with --control."));
  if (!at.run) return;
  if (chosen?.error) return void detail.replaceChildren(make("h2", {}, at.run), make("p", { class: "failure", role: "alert" }, chosen.error));
  let takes = null;
  let last = null;
  const draw = () => last && here() && show(detail, at.run, last, takes, control);
  ask(`api/takes?${new URLSearchParams({ run: at.run })}`).then((found) => ((takes = found.takes), draw()));
  const events = new EventSource(`api/watch?${new URLSearchParams({ run: at.run })}`);
  events.onmessage = (event) => {
    last = JSON.parse(event.data);
    const old = list.querySelector(`tr[data-run="${CSS.escape(at.run)}"]`);
    if (old) old.replaceWith(row(last.run));
    draw();
  };
  events.onerror = () => detail.querySelector("h2") || detail.replaceChildren(make("h2", {}, at.run), make("p", {}, "there is no such run"));
  return () => events.close();
}

const stands = (run) => (run.stopping ? "stopping" : run.working ? "running" : run.elsewhere ? "running elsewhere" : run.solved ? (run.ended ? "solved" : "solved so far") : run.ended ? "ended" : run.elsewhere === false ? "stopped" : "stopped or running elsewhere");
const bytes = (count) => (count >= 1e9 ? `${(count / 1e9).toFixed(1)} GB` : `${Math.max(1, Math.round(count / 1e6)).toLocaleString("en")} MB`);
const time = (seconds) => (seconds >= 5400 ? `${(seconds / 3600).toFixed(1)} h` : seconds >= 90 ? `${Math.round(seconds / 60)} min` : `${Math.max(1, Math.round(seconds))} s`);
const words = (found) => `${found.entries.toLocaleString("en")} entries, ${bytes(found.memory)} of memory, ${bytes(found.disk)} on disk, ${found.seconds === null ? "time unknown" : `about ${time(found.seconds)}`} (${found.budget})${found.fits ? "" : ": more memory than available"}`;

function row(run) {
  const name = make("a", { href: link("runs", { run: run.name }) }, run.name);
  if (run.error) return make("tr", { "data-run": run.name }, make("td", {}, name), make("td", { colspan: 5, class: "failure" }, run.error));
  return make("tr", { "data-run": run.name }, make("td", {}, name), make("td", {}, run.game), make("td", {}, run.algorithm), make("td", {}, make("span", { class: "state" }, stands(run))), make("td", { class: "number" }, run.last ? run.last.iterations.toLocaleString("en") : "0"), make("td", { class: "number" }, run.last?.exploitability?.toPrecision(4) ?? "—"));
}

function show(place, name, { steps, run, said }, takes, control) {
  if (run.error) return void redraw(place, make("h2", {}, name), make("p", { class: "failure", role: "alert" }, run.error));
  const last = steps.at(-1);
  const order = (what) => () => ask(`api/${what}?${new URLSearchParams({ run: name })}`, {});
  const whole = run.left === null || !last ? null : last.seconds + run.left;
  const logged = place.querySelector(".log");
  const scrolled = logged ? logged.scrollTop : 0;
  place.hidden = false;
  redraw(
    place,
    make("h2", {}, name, " ", make("span", { class: "state", id: "state" }, stands(run))),
    make("p", { id: "stands" }, last ? `${last.iterations.toLocaleString("en")} iterations in ${time(last.seconds)}${last.exploitability === null ? "" : `, exploitability of the ${run.strategy} ${last.exploitability.toPrecision(4)} chips per game`}` : "no measurement yet"),
    make("progress", { max: 1, value: whole ? last.seconds / whole : 0, "aria-label": "share of the budget that is spent" }),
    make("p", { class: "soft", id: "takes" }, `budget: ${run.budget}${run.left > 0 ? `, about ${time(run.left)} left` : ""}`, make("br"), takes ? `estimated: ${words(takes)}` : "\u00a0"),
    curve(steps),
    gains(steps),
    steps.length ? log(steps) : "",
    said ? make("details", { open: true }, make("summary", {}, "output"), make("pre", { class: "said", id: "said" }, said)) : "",
    make(
      "div",
      { class: "bar" },
      run.solved ? make("a", { href: link("strategy", { player: name }) }, "show its strategy") : "",
      control ? make("button", { id: "stop", disabled: !run.working || run.stopping, onclick: order("stop") }, "stop") : "",
      control ? make("button", { id: "resume", disabled: run.working || run.elsewhere || run.ended, onclick: order("resume") }, "resume") : "",
    ),
  );
  if (scrolled) place.querySelector(".log").scrollTop = scrolled;
}

// The log, with the last entry first.
function log(steps) {
  const short = (value) => (value === null || value === undefined ? "—" : value.toPrecision(4));
  const line = (step) => make("tr", {}, make("td", { class: "number" }, step.iterations.toLocaleString("en")), make("td", { class: "number" }, step.seconds.toFixed(1)), make("td", { class: "number" }, step.cpu_seconds.toFixed(1)), make("td", { class: "number" }, short(step.exploitability)), make("td", { class: "number" }, short(step.current_exploitability)), make("td", { class: "number" }, short(step.value)));
  const heads = ["iterations", "seconds", "CPU s", "exploitability", "current strategy's", "value"];
  return make("div", { class: "scroll log", tabindex: 0, role: "region", "aria-label": "log" }, make("table", { id: "log" }, make("thead", {}, make("tr", {}, heads.map((word) => make("th", { class: "number" }, word)))), make("tbody", {}, steps.slice(-200).reverse().map(line))));
}

const power = (at) => `10${[...String(at)].map((letter) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[letter] || "⁻").join("")}`;

// Exploitability over iterations, both on logarithmic scales.
function curve(steps) {
  const points = steps.filter((step) => step.iterations > 0 && step.exploitability > 0).map((step) => [Math.log10(step.iterations), Math.log10(step.exploitability)]);
  if (points.length < 2) {
    if (steps.length < 2 || points.length) return make("p", { class: "soft" }, "the curve begins with the second measurement");
    return Object.keys(steps.at(-1).others).length ? "" : make("p", { class: "soft" }, "this run does not measure exploitability, so there is no curve");
  }
  const [xs, ys] = [points.map((point) => point[0]), points.map((point) => point[1])];
  const [left, right, low, high] = [Math.floor(Math.min(...xs)), Math.ceil(Math.max(...xs)), Math.floor(Math.min(...ys)), Math.ceil(Math.max(...ys))];
  const x = (value) => 60 + (520 * (value - left)) / (right - left || 1);
  const y = (value) => 250 - (230 * (value - low)) / (high - low || 1);
  const lines = [];
  for (let at = left; at <= right; at += 1) lines.push(make("svg:line", { class: "axis", x1: x(at), x2: x(at), y1: 20, y2: 250 }), make("svg:text", { x: x(at) - 8, y: 266 }, power(at)));
  for (let at = low; at <= high; at += 1) lines.push(make("svg:line", { class: "axis", x1: 60, x2: 580, y1: y(at), y2: y(at) }), make("svg:text", { x: 4, y: y(at) + 4 }, power(at)));
  return make("svg:svg", { class: "chart", viewBox: "0 0 600 290", role: "img", "aria-label": "exploitability over iterations" }, lines, make("svg:path", { class: "curve", d: points.map(([a, b], n) => `${n ? "L" : "M"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join("") }), make("svg:text", { x: 270, y: 286 }, "iterations"));
}

const DASHES = ["", "8 4", "2 4", "12 4 2 4"]; // they distinguish the curves

// Win rates against simple players during the run, in mbb/h: one curve per player.
function gains(steps) {
  const names = Object.keys(steps.at(-1)?.others || {});
  const known = steps.filter((step) => step.iterations > 0 && names.every((name) => Number.isFinite(step.others[name])));
  if (!names.length || known.length < 2) return "";
  const all = known.flatMap((step) => names.map((name) => step.others[name]));
  const step = 10 ** Math.floor(Math.log10(Math.max(...all, 1) - Math.min(...all, 0)));
  const [low, high] = [step * Math.floor(Math.min(...all, 0) / step), step * Math.ceil(Math.max(...all, 1) / step)];
  const most = known.at(-1).iterations;
  const x = (value) => 80 + (440 * value) / most;
  const y = (value) => 250 - (230 * (value - low)) / (high - low);
  const lines = [];
  for (let at = low; at <= high; at += step) lines.push(make("svg:line", { class: "axis", x1: 80, x2: 520, y1: y(at), y2: y(at) }), make("svg:text", { x: 4, y: y(at) + 4 }, at.toLocaleString("en")));
  const curves = names.map((name, n) => make("svg:path", { class: "curve", "stroke-dasharray": DASHES[n % DASHES.length], d: known.map((one, m) => `${m ? "L" : "M"}${x(one.iterations).toFixed(1)} ${y(one.others[name]).toFixed(1)}`).join("") }));
  const told = names.map((name, n) => make("li", {}, make("svg:svg", { class: "dash", viewBox: "0 0 36 8", "aria-hidden": "true" }, make("svg:path", { class: "curve", "stroke-dasharray": DASHES[n % DASHES.length], d: "M0 4L36 4" })), ` ${name} ${Math.round(known.at(-1).others[name]).toLocaleString("en")}`));
  return make(
    "figure",
    { id: "gains" },
    make("figcaption", {}, "win rates against simple players, mbb/h", make("ul", { class: "legend" }, told)),
    make("svg:svg", { class: "chart", viewBox: "0 0 600 290", role: "img", "aria-label": "win rates against simple players, by iterations" }, lines, curves, make("svg:text", { x: 520, y: 274, "text-anchor": "end" }, `${most.toLocaleString("en")} iterations`)),
  );
}

// Start a run: show its estimated cost, and open its page once its folder exists.
async function begin(asked, said) {
  const takes = await ask("api/plan", asked);
  said.textContent = words(takes);
  if (!takes.fits) return;
  const { name: run } = await ask("api/runs", asked);
  for (let waited = 0; waited < 120; waited += 1) {
    if ((await ask("api/runs")).runs.some((one) => one.name === run)) return go("runs", { run });
    await new Promise((again) => setTimeout(again, 500));
  }
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
      make("button", { id: "plan", onclick: async () => { const found = await ask("api/plan", asked()); said.textContent = words(found); } }, "estimate the cost"),
      make("button", { class: "main", id: "start", onclick: () => begin(asked(), said) }, "start"),
    ),
  );
}
