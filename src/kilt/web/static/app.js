// The page: four rooms; the address determines the room and its content.
import * as play from "./play.js";
import * as strategy from "./strategy.js";
import * as abstraction from "./abstraction.js";
import * as runs from "./runs.js";
import * as train from "./train.js";
import { Expected, failure, make } from "./tools.js";

const ROOMS = { play, strategy, abstraction, runs, train };
const WITHIN = { train: "play" }; // a room without a tab marks the tab of another
let leave = () => {};

export function place() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const room = path in ROOMS ? path : "play";
  return { room, at: Object.fromEntries(new URLSearchParams(query || "")) };
}

export function link(room, at) {
  const query = new URLSearchParams(Object.entries(at).filter(([, value]) => value));
  return `#/${room}${query.size ? "?" + query : ""}`;
}

export function go(room, at) {
  location.hash = link(room, at);
}

let entered = 0;

async function enter() {
  const { room, at } = place();
  const mine = (entered += 1);
  leave();
  leave = () => {};
  for (const tab of document.querySelectorAll("nav a"))
    if (tab.dataset.room === (WITHIN[room] || room)) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  document.title = `kilt · ${room}`;
  const main = document.getElementById("room");
  if (main.dataset.room !== room) main.replaceChildren(make("h1", {}, room[0].toUpperCase() + room.slice(1)));
  main.dataset.room = room;
  const left = (await ROOMS[room].enter(main, at, () => mine === entered).catch(failed)) || (() => {});

  function failed(error) {
    if (!(error instanceof Expected)) throw error;
    if (mine !== entered) return;
    main.querySelector(":scope > .failure")?.remove();
    main.append(failure(error.message));
  }

  if (mine === entered) leave = left;
  else left(); // the user left before the room was loaded
}

addEventListener("hashchange", enter);
if (new URLSearchParams(location.search).has("token")) history.replaceState(null, "", location.pathname + location.hash);
enter();
