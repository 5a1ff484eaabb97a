"""The web server: the requests that it answers, and checks of who may send them.

Without a token, the server answers only browsers on this machine. Every request must name a host that the server knows,
which prevents DNS rebinding, and must not come from another page. Requests from other machines also need a token.
Requests are short, and only a few are processed at a time.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any, TypeVar

from anyio import CancelScope, CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel, Field
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kilt import __version__
from kilt.cancellation import CancellationError, cancelled_by
from kilt.errors import KiltError
from kilt.play.agent import has_policy, require_policy
from kilt.web.card_views import bucket_view, classes_view
from kilt.web.library import SMALL, Library
from kilt.web.runner import Runner
from kilt.web.spot_views import spot_values, spot_view
from kilt.web.tables import DEAL, WebTable, WebTables
from kilt.web.views import abstraction_view, read_board, strategy_view, values_view

T = TypeVar("T")

STATIC = Path(__file__).parent / "static"
LONGEST = 20_000  # largest number of bytes of a request, and of its address
AT_ONCE = 16  # requests processed at the same time; others wait
HEAVY = 2  # slow requests processed at the same time
LONGEST_WORK = 60.0  # time limit of an answer in seconds
GONE = "the client has disconnected"
POLL = 0.5  # seconds between checks of a watched run's log
COOKIE = "kilt-token"
API = "/api/"
OWN = ("same-origin", "none")  # Sec-Fetch-Site of the server's own page and of typed addresses; programs send none
LOCAL = ("localhost", "127.0.0.1", "[::1]")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


@dataclass(frozen=True)
class Guard:
    """Decides whether the server may answer a request, by its host, origin and token.

    Attributes
    ----------
    hosts : frozenset of str
        Names of the server in lower case, without ports. With a token, any numeric address is accepted too.
    token : str
        Must be in a browser's request, once in the address and later in a cookie; empty: no token is needed.
    """

    hosts: frozenset[str] = frozenset(LOCAL)
    token: str = ""

    def refusal(self, request: Request) -> str:
        """Return why a request is refused, or an empty text if it is allowed."""
        host = request.headers.get("host", "").lower()
        if _name(host) not in self.hosts and not (self.token and _is_address(_name(host))):
            return f"this server does not answer to {host[:100]!r}: use the address that it printed"
        origin = request.headers.get("origin")
        if origin is not None and origin.lower() != f"{request.url.scheme}://{host}":  # an origin includes its port
            return "requests from other pages are refused"
        if request.scope["path"].startswith(API) and request.headers.get("sec-fetch-site", "none") not in OWN:
            return "requests from other pages are refused"
        if self.token:
            shown = request.query_params.get("token") or request.cookies.get(COOKIE, "")
            if not secrets.compare_digest(shown.encode(), self.token.encode()):
                return "a token is needed: use the address that the server printed"
        if len(request.url.path) + len(request.url.query) > LONGEST:
            return "the address is too long"
        try:
            if int(request.headers.get("content-length", "0")) > LONGEST:
                return "the request is too long"
        except ValueError:
            return "the request does not declare its length"
        if request.method == "POST" and "transfer-encoding" in request.headers:
            return "the request does not declare its length"
        return ""


def _is_address(host: str) -> bool:
    """Return whether a host is a numeric address.

    Another site could point a name to this machine, but not an address.
    """
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _name(host: str) -> str:
    """Return a host without its port."""
    return host if host.endswith("]") else host.rpartition(":")[0] or host


class Guarded:
    """An ASGI wrapper that refuses the requests that its guard does not allow.

    It also adds security headers to all answers. It uses plain ASGI, so that the inner application still notices when
    the client disconnects.
    """

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self.app, self.guard = app, guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        if why := self.guard.refusal(request):
            await JSONResponse({"error": why}, status_code=403)(scope, receive, send)
            return

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                if self.guard.token and request.query_params.get("token"):
                    cookie = Response()
                    secure = request.url.scheme == "https"
                    cookie.set_cookie(COOKIE, self.guard.token, httponly=True, samesite="strict", secure=secure)
                    headers.append("set-cookie", cookie.headers["set-cookie"])
            await send(message)

        await self.app(scope, receive, answer)


class NewTable(BaseModel):
    """A request to open a table: the opponent, and the number of hands in a duplicate match."""

    player: str = Field(max_length=500)
    duplicate: int = Field(default=0, ge=0, le=10_000)  # hands of a duplicate match; 0: no fixed number


class TypedInput(BaseModel):
    """A request with a person's typed text or pressed button."""

    text: str = Field(max_length=100)
    asked: int | None = None  # number of the question that the text answers; answers to older questions are ignored


class Configuration(BaseModel):
    """A request with a run's configuration, as TOML."""

    config: str = Field(max_length=15_000)


class NewRun(Configuration):
    """A request to start a run: its name and its configuration."""

    name: str  # name of the run's folder


@dataclass
class State:
    """The server's state between requests: the players, the open tables, and the running processes."""

    library: Library
    runner: Runner | None = None  # None if runs cannot be started or stopped
    tables: WebTables = field(default_factory=WebTables)


def create_app(state: State, guard: Guard | None = None) -> FastAPI:
    """Return the web application, which answers all of the page's requests."""
    app = FastAPI(title="kilt", version=__version__, docs_url=None, redoc_url=None, openapi_url=None)
    busy, heavy = CapacityLimiter(AT_ONCE), CapacityLimiter(HEAVY)

    async def work(function: Callable[..., T], *arguments: Any) -> T:
        return await run_sync(function, *arguments, limiter=busy)

    async def work_hard(request: Request, function: Callable[..., T], *arguments: Any) -> T:
        """Run a slow function: few at a time, for `LONGEST_WORK` seconds at most, while the client is connected."""
        await request.body()  # the next message means that the client has disconnected
        gone = Event()

        def run() -> T:
            end = monotonic() + LONGEST_WORK

            def check() -> None:
                if gone.is_set():
                    raise CancellationError(GONE)
                if monotonic() > end:
                    raise CancellationError(
                        f"this takes longer than {LONGEST_WORK:g} seconds: choose a later decision or a smaller game"
                    )

            with cancelled_by(check):
                check()
                return function(*arguments)

        async def listen() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass
            gone.set()
            waiting.cancel()

        with CancelScope() as waiting:
            listening = asyncio.create_task(listen())
            try:
                return await run_sync(run, limiter=heavy)
            finally:
                gone.set()  # also when the server ends
                listening.cancel()
        raise CancellationError(GONE)

    app.add_middleware(Guarded, guard=guard or Guard())

    @app.exception_handler(KiltError)
    async def failed(request: Request, error: KiltError) -> Response:
        return JSONResponse({"error": str(error)}, status_code=422)

    @app.exception_handler(RequestValidationError)
    async def misread(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        return JSONResponse({"error": f"{first['loc'][-1]}: {first['msg']}"}, status_code=422)

    # Play

    @app.get("/api/players")
    async def players() -> dict[str, Any]:
        def listed() -> dict[str, Any]:
            library = state.library
            return {"players": library.players(), "bucketed": library.bucketed(), "spots": library.spots()}

        return await work(listed) | {"small": list(SMALL), "control": state.runner is not None}

    @app.post("/api/tables")
    async def open_table(asked: NewTable) -> dict[str, Any]:
        def opened() -> dict[str, Any]:
            agent, game = state.library.player(asked.player)
            table = WebTable.open(asked.player, agent, game, secrets.randbits(31), asked.duplicate)
            name = state.tables.add(table)
            table.send(DEAL)
            return {"table": name, **table.state()}

        return await work(opened)

    @app.get("/api/tables/{name}")
    async def table_state(name: str) -> dict[str, Any]:
        return {"table": name, **state.tables[name].state()}

    @app.post("/api/tables/{name}")
    async def act(name: str, typed: TypedInput) -> dict[str, Any]:
        def acted() -> dict[str, Any]:
            table = state.tables[name]
            table.send(typed.text, typed.asked)
            return {"table": name, **table.state()}

        return await work(acted)

    @app.get("/api/tables/{name}/judged")
    async def judged(name: str, request: Request) -> dict[str, Any]:
        def looked() -> dict[str, Any]:
            table = state.tables[name]
            agent, game = table.session.agent, table.session.game
            states, learning = None, False
            if has_policy(agent, game):
                states, learning = state.library.states(table.player, require_policy(agent), game)
            return {**table.review(states), "learning": learning}

        return await work_hard(request, looked)

    @app.get("/api/tables/{name}/worth")
    async def worth(name: str, hand: int, decision: int, request: Request) -> dict[str, Any]:
        return await work_hard(request, state.tables[name].worth, hand, decision)

    @app.get("/api/tables/{name}/hands.phhs")
    async def hands(name: str) -> Response:
        return PlainTextResponse(
            await work(state.tables[name].phhs),
            headers={"Content-Disposition": 'attachment; filename="hands.phhs"'},
        )

    # Strategy and cards

    @app.get("/api/strategy")
    async def strategy(player: str, history: str = "", board: str = "") -> dict[str, Any]:
        def viewed() -> dict[str, Any]:
            if player in state.library.spots():
                return {"player": player, **spot_view(state.library.spot(player), history)}
            agent, game = state.library.policy_player(player)
            return {"player": player, **strategy_view(agent, game, history, read_board(game, board))}

        return await work(viewed)

    @app.get("/api/values")
    async def values(
        request: Request, player: str, history: str = "", board: str = "", cell: str = ""
    ) -> dict[str, Any]:
        def viewed() -> dict[str, Any]:
            if player in state.library.spots():
                return spot_values(state.library.spot(player), history)
            agent, game = state.library.policy_player(player)
            return values_view(agent, game, history, read_board(game, board), cell)

        return await work_hard(request, viewed)

    def cards_viewed(view: Callable[..., dict[str, Any]], player: str, board: str, *more: int) -> dict[str, Any]:
        """Return the cards on a board as a player sees them."""
        agent, game = state.library.player(player)
        return view(agent, game, read_board(game, board), *more)

    @app.get("/api/abstraction")
    async def abstraction(player: str, board: str = "", seat: int = 0) -> dict[str, Any]:
        return {"player": player, **await work(cards_viewed, abstraction_view, player, board, seat)}

    @app.get("/api/bucket")
    async def bucket(request: Request, player: str, number: int, board: str = "", seat: int = 0) -> dict[str, Any]:
        return await work_hard(request, cards_viewed, bucket_view, player, board, number, seat)

    @app.get("/api/classes")
    async def classes(request: Request, player: str, board: str = "", seat: int = 0) -> dict[str, Any]:
        return await work_hard(request, cards_viewed, classes_view, player, board, seat)

    # Runs

    def at_work(place: Path) -> dict[str, Any]:
        """Return whether a run of this server is still running, and whether it is stopping."""
        job = state.runner.job(place) if state.runner else None
        return {"working": job is not None, "stopping": job is not None and job.stopping}

    def standing(name: str) -> dict[str, Any]:
        """Return all data about a run."""
        place = state.library.place(name)
        run = state.library.run(name, place)
        return {
            "steps": [] if "error" in run else state.library.steps(name),
            "run": {**run, **at_work(place)},
            "said": state.runner.last_output(name, place) if state.runner else "",
        }

    @app.get("/api/runs")
    async def runs() -> dict[str, Any]:
        def listed() -> list[dict[str, Any]]:
            places = state.library.run_places()
            return [{**state.library.run(name, place), **at_work(place)} for name, place in places.items()]

        return {"runs": await work(listed), "control": state.runner is not None}

    @app.get("/api/steps")
    async def steps(run: str) -> dict[str, Any]:
        return {"steps": await work(state.library.steps, run), **await work(state.library.run, run)}

    @app.get("/api/watch")
    async def watch(run: str, request: Request) -> Response:
        await work(state.library.place, run)

        async def events() -> AsyncIterator[str]:
            sent = ""
            while not await request.is_disconnected():
                found = json.dumps(await work(standing, run))
                if found != sent:
                    sent = found
                    yield f"data: {found}\n\n"
                await asyncio.sleep(POLL)

        return StreamingResponse(events(), media_type="text/event-stream")

    @app.get("/api/takes")
    async def takes(request: Request, run: str) -> dict[str, Any]:
        return {"takes": await work_hard(request, state.library.estimated_cost, run)}

    def controlled() -> Runner:
        if state.runner is None:
            raise KiltError("this server starts and stops no runs: start it with `control`")
        return state.runner

    @app.post("/api/plan")
    async def plan(asked: Configuration, request: Request) -> dict[str, Any]:
        return await work_hard(request, controlled().estimate, asked.config)

    @app.post("/api/runs")
    async def start(asked: NewRun) -> dict[str, Any]:
        return {"name": await work(controlled().start, asked.name, asked.config)}

    @app.post("/api/stop")
    async def stop(run: str) -> dict[str, Any]:
        await work(controlled().stop, run, state.library.places().get(run))
        return {}

    @app.post("/api/resume")
    async def resume(run: str) -> dict[str, Any]:
        await work(controlled().resume, run, state.library.place(run))
        return {}

    app.mount("/", StaticFiles(directory=STATIC, html=True), name="page")
    return app
