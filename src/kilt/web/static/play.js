// The play room: a table with an agent as opponent, and the history of the hand.
import { go, link } from "./app.js";
import { Expected, ask, behind, card, chips, chooser, failure, fixed, make, percent, players, redraw, signed } from "./tools.js";

const OPEN = "kilt-table"; // the browser stores the name of the user's table under this key

export async function enter(main, at, here) {
  const names = await players();
  const name = sessionStorage.getItem(OPEN);
  let state = null;
  if (name && !at.player)
    state = await ask(`api/tables/${name}`).catch(() => (sessionStorage.removeItem(OPEN), null));
  const player = at.player || state?.player || names[0];
  let busy = false;
  let refused = ""; // reason why no table could be opened

  // The values of the last hand's decisions, and the luck-adjusted results of all hands: requested when a hand ends.
  async function judge() {
    if (!state || state.turn || !state.played || state.judged) return;
    const mine = state;
    const nothing = (error) => ({ decisions: null, deserved: null, failed: error.message });
    const look = async () => (mine.judged = { ...(await ask(`api/tables/${mine.table}/judged`).catch(nothing)) });
    mine.judged = { decisions: null, deserved: null };
    await look();
    if (mine === state) draw();
    const decisions = mine.judged.decisions || [];
    for (let at = decisions.length - 1; at >= 0 && mine === state && here(); at -= 1) { // from the last on, which has the fewest boards to come
      const asked = new URLSearchParams({ hand: mine.judged.hand, decision: at });
      decisions[at] = { ...(await ask(`api/tables/${mine.table}/worth?${asked}`).catch(() => ({}))), told: true };
      if (!decisions[at].options) break;
      if (mine === state) draw();
    }
    while (mine === state && here() && mine.judged.learning) {
      await new Promise((again) => setTimeout(again, 3000));
      if (mine !== state || !here()) return;
      await look();
      mine.judged.decisions = decisions.length ? decisions : mine.judged.decisions;
      if (mine === state) draw();
    }
  }

  async function sit(duplicate) {
    try {
      [state, refused] = [await ask("api/tables", { player: state?.player || player, duplicate }), ""];
      sessionStorage.setItem(OPEN, state.table);
      if (at.player) history.replaceState(null, "", link("play", {}));
    } catch (error) {
      if (!(error instanceof Expected)) throw error;
      refused = error.message;
    }
    draw();
  }

  async function send(text) {
    if (busy || !state || !text) return;
    busy = true;
    try {
      state = await ask(`api/tables/${state.table}`, { text, asked: state.asked });
    } finally {
      busy = false;
      draw();
    }
  }

  function draw() {
    if (!here()) return;
    redraw(
      main,
      make("h1", {}, "Play"),
      make(
        "div",
        { class: "bar" },
        chooser(names, state?.player || player, "opponent", (name) => (sessionStorage.removeItem(OPEN), go("play", { player: name }))),
        make("button", { class: state ? "" : "main", id: "sit", onclick: () => sit(0) }, state ? "new table" : "sit down"),
        make("button", { id: "duplicate", title: "every deal is played twice, the second time with the seats swapped, so that luck cancels", onclick: () => sit(20) }, "duplicate match of 20 hands"),
        make("a", { id: "trainer", href: link("train", {}) }, "trainer"),
      ),
      refused ? failure(refused) : "",
      state ? table(state, send) : make("p", { class: "soft" }, "Choose an opponent and sit down. You swap seats every hand."),
    );
    judge();
    main.querySelector(".history")?.scrollTo(0, 1e6); // scroll to the last event
  }

  const keys = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !state || event.target.closest?.("select, input, textarea")) return;
    const key = event.key.toLowerCase();
    if (state.turn && key === "?") send("?");
    else if (state.turn && key === "r" && !state.limit) document.getElementById("typed").focus();
    else if (state.turn && state.turn.choices.some((choice) => choice.key === key)) send(key);
    else if (state.turn?.sizes[Number(key) - 1]) send(state.turn.sizes[Number(key) - 1].key);
    else if (!state.turn && !state.over && key === "n") send("deal");
    else return;
    event.preventDefault();
  };
  addEventListener("keydown", keys);
  if (at.player && !state) await sit(0);
  else draw();
  return () => removeEventListener("keydown", keys);
}

function table(state, send) {
  const seen = (kind) => state.events.filter((event) => event.kind === kind);
  const begin = seen("begin").at(-1);
  const board = seen("dealt").at(-1)?.board || [];
  const made = seen("dealt").at(-1)?.made;
  const end = seen("end").at(-1);
  const theirs = end?.shown.length ? end.shown[1][0] : (begin?.hand || []).map(() => "?");
  const stacks = state.turn?.stacks;
  return make(
    "div",
    { class: "columns" },
    make(
      "div",
      {},
      make(
        "section",
        { class: "felt", "aria-label": "the table" },
        make("div", {}, make("div", { class: "cards", id: "theirs" }, theirs.map(card)), make("div", { class: "pot" }, stacks ? `${state.player}: ${chips(stacks[1])}` : state.player)),
        make("div", {}, make("div", { class: "cards", id: "board" }, board.map(card)), make("div", { class: "pot" }, state.turn ? `pot ${chips(state.turn.pot)}` : end ? outcome(end) : "")),
        make("div", {}, make("div", { class: "cards", id: "mine" }, (begin?.hand || []).map(card)), make("div", { class: "pot" }, [begin ? `you: ${begin.seat}` : "", stacks ? chips(stacks[0]) : "", made || ""].filter(Boolean).join(" · "))),
      ),
      actions(state, send),
      end ? decisions(state.judged) : "",
      end ? afterwards(state) : "",
    ),
    make("aside", { class: "panel" }, make("h2", {}, begin ? `hand ${begin.number + 1}${state.hands ? ` of ${state.hands}` : ""}` : ""), make("ul", { class: "history", "aria-live": "polite" }, state.events.map(line)), score(state)),
  );
}

function outcome(end) {
  return end.won > 0 ? `you win ${chips(end.won)}` : end.won < 0 ? `you lose ${chips(-end.won)}` : "split pot";
}

const SIZES = { "50%": "½ pot", "75%": "¾ pot", "1x": "pot", "2x": "2 pots", a: "all-in" };

function actions(state, send) {
  if (state.over) return make("p", { class: "actions", id: "over" }, state.hands && state.played >= state.hands ? "The match is over: sit down again for another." : "This table is closed: sit down again.");
  if (!state.turn) return make("div", { class: "actions" }, make("button", { class: "main", id: "deal", onclick: () => send("deal") }, "next hand ", make("kbd", {}, "n")));
  const buttons = [];
  for (const choice of state.turn.choices) {
    if (choice.key !== "r" || state.limit) buttons.push(make("button", { class: "main", "data-key": choice.key, onclick: () => send(choice.key) }, `${choice.words} `, make("kbd", {}, choice.key)));
  }
  state.turn.sizes.forEach((size, n) => buttons.push(make("button", { "data-key": size.key, title: size.words, onclick: () => send(size.key) }, `${SIZES[size.key] || size.key} ${size.words.match(/[\d,]*\d/)[0]} `, make("kbd", {}, String(n + 1)))));
  const typed = make("input", { id: "typed", size: 12, placeholder: "r: type 300, 60%", "aria-label": "type an action", autocomplete: "off", onkeydown: (event) => event.key === "Enter" && send(event.target.value) });
  return make("div", { class: "actions" }, buttons, typed, make("button", { id: "advice", onclick: () => send("?") }, "ask for advice ", make("kbd", {}, "?")));
}

function line(event) {
  const words = {
    begin: () => `you are ${event.seat}`,
    acted: () => (event.mine ? `you ${event.words}` : `it ${event.words}`),
    dealt: () => `${event.name}: ${event.board.join(" ")} (${event.made})`,
    told: () => event.words,
    failed: () => event.words,
    advice: () => (event.rows ? `it would ${event.rows.map(([action, share]) => `${action} ${percent(share)}`).join(", ")}` : "its strategy is unknown"),
    end: () => [outcome(event), ...event.shown.map(([cards, made]) => `${cards.join(" ")}: ${made}`)].join(" · "),
  }[event.kind];
  return make("li", { class: event.mine ? "mine" : event.kind === "told" ? "soft" : "" }, words ? words() : event.kind);
}

const rate = (found) => `${signed(Math.round(found.mean))}${found.margin === null ? "" : ` ± ${chips(Math.round(found.margin))}`} mbb/h`;
const WAYS = {
  AIVAT: "AIVAT: your winnings without the luck of the cards and of its random choices, by the value of each state under its strategy",
  "BC-DIVAT": "BC-DIVAT: your winnings without the luck of the cards and of its random choices, as if each round had one bet and a call",
};

function score(state) {
  const [won, less] = [state.judged?.won || state.won, state.judged?.deserved];
  const waits = state.judged?.learning ? "; AIVAT learns from its strategy …" : "";
  return make(
    "div",
    { id: "score" },
    make("h2", {}, "score"),
    make("p", {}, `${signed(state.total)} chips in ${state.played} hand${state.played === 1 ? "" : "s"}`, make("br"), make("span", { class: "soft" }, won ? `${rate(won)} (95% interval)` : "\u00a0")),
    make("p", { id: "deserved" }, less ? rate(less) : "\u00a0", make("br"), make("span", { class: "soft", title: less ? WAYS[less.by] : null }, less ? `luck-adjusted by ${less.by}${waits}` : "\u00a0")),
    state.played ? make("a", { href: `api/tables/${state.table}/hands.phhs`, download: "hands.phhs" }, "hands as PHH") : "",
  );
}

const around = (value, margin, digits) => `${fixed(value, digits)}${margin ? ` ± ${fixed(margin, digits)}` : ""}`;

// After a hand: the person's decisions, the agent's strategy there, and the value of each action.
function decisions(found) {
  if (!found?.decisions?.length) return make("section", { class: "panel soft", id: "decisions" }, found?.failed || (found?.hand ? "its strategy is unknown" : "your decisions are evaluated …"));
  const guessed = found.decisions.some((one) => one.options.some((option) => option.margin));
  return make(
    "section",
    { class: "panel scroll", id: "decisions" },
    make("h2", {}, "your decisions, and what it would have done"),
    make("table", {}, make("tbody", {}, found.decisions.map(decision))),
    make("p", { class: "soft", id: "meaning" }, `EV: expected chips from the decision on with your hand, against the hands that the agent would hold there, if both players then follow the agent's strategy${guessed ? " (±: 95% interval, estimated on sampled boards)" : ""}. A fold is 0. The verdict is the highest EV minus the EV of your action. The agent's strategy is not perfect: an action that it never takes can have the highest EV.`),
  );
}

function decision(one) {
  const taken = one.options.find((option) => option.taken);
  const shown = one.options.filter((option) => option.share > 0.005 || option.taken || option.value !== null);
  const digits = one.options.some((option) => option.margin) ? 0 : one.options.every((option) => Math.abs(option.value) < 100) ? 2 : 1;
  const words = shown.map((option) => `${option.words} ${percent(option.share)}${option.value === null ? "" : ` (EV ${around(option.value, option.margin, digits)})`}`);
  const verdict = taken.value === null ? (one.told ? "EV unknown" : "…") : judgement(one.options, taken, digits);
  return make("tr", {}, make("td", { class: "mine" }, `you ${one.taken}`), make("td", {}, words.join(" · ")), make("td", { class: "number verdict" }, verdict));
}

// The difference of the person's action to the highest EV, from the displayed numbers.
function judgement(options, taken, digits) {
  const known = options.filter((option) => option.value !== null);
  const less = behind(known.map((option) => option.value), known.indexOf(taken), digits);
  const best = known.reduce((one, other) => (other.value > one.value ? other : one));
  return less > 0 ? `${around(less, taken.loss_margin, digits)} less than ${best.words}` : "highest EV";
}

// After a hand: links to the agent's strategy with all hands at each decision.
function afterwards(state) {
  if (!state.last) return "";
  return make(
    "section",
    { class: "panel", id: "afterwards" },
    make("h2", {}, "its strategy at each decision, with every hand"),
    make("ol", { class: "crumbs" }, state.last.moves.map(({ history, words, mine }) => make("li", {}, make("a", { href: link("strategy", { player: state.player, history, board: state.last.board }) }, `${mine ? "you" : "it"} ${words}`)))),
  );
}
