"""``kilt play``: play against an agent in the terminal."""

from __future__ import annotations

import sys
from contextlib import closing, nullcontext, suppress
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer
from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from kilt.cli import options
from kilt.cli.show import out, waiting

if TYPE_CHECKING:
    from kilt.games.gamedef import GameDef
    from kilt.play.person import Ending, Session, TurnView

SUITS = {"s": ("♠", "black"), "h": ("♥", "red"), "d": ("♦", "blue"), "c": ("♣", "green")}  # four colours
PAPER = "bold {} on bright_white"  # cards look like paper on dark and on light terminals
LETTERS = str.maketrans({"♠": "s", "♥": "h", "♦": "d", "♣": "c", "·": "|", "–": "-", "±": "+-", "…": "...", "█": "#"})
INDENT, LABEL = 2, 10  # columns
PROMPT = "  your turn > "
MANY = 1000  # fewer hands say little, whatever the result
NARROW = 100  # mbb/h: half-width of an interval that is considered informative

Part: TypeAlias = str | tuple[str, str]  # words, or words and their style

HELP = (
    ("f, fold", "give up the hand"),
    ("c, check, call", "put in what is needed to stay, nothing where that is free"),
    ("r300, bet 300, 300", "bet 300, or raise to 300 chips in this round"),
    ("50%, 1x, pot", "bet or raise by so much of the pot (after calling)"),
    ("m, a", "the least raise; all-in"),
    ("?", "what the agent would do here with your cards"),
    ("q, Ctrl-D, Ctrl-C", "leave; the hand that you are in does not count"),
)
HELP_LIMIT = (*HELP[:2], ("r, bet, raise", "bets and raises have one size in this game"), *HELP[5:])


def play(
    agent: Annotated[str, options.WHO] = "house",
    game: Annotated[str | None, options.GAME] = None,
    hands: Annotated[int | None, options.HANDS] = None,
    match: Annotated[
        int | None,
        typer.Option(
            "--match", metavar="N", help="A match of N hands: at its end, what you won and what you deserved."
        ),
    ] = None,
    duplicate: Annotated[bool, options.DUPLICATE] = False,
    seed: Annotated[int | None, options.SEED] = None,
    log: Annotated[Path | None, options.LOG] = None,
    name: Annotated[str, options.NAME] = "You",
) -> None:
    """Play against an agent in the terminal. Type h at the table for help.

    Seats swap after every hand.

    Bet sizes count from the start of the round: after a raise to 300 and a call, `bet 300` in the next round
    puts in 300 more.
    """
    import random

    from kilt.errors import PlayError
    from kilt.games.playable import load_holdem
    from kilt.play.acpc import Score, format_log_entry, read_names
    from kilt.play.logs import NewLog
    from kilt.play.person import Adviser, Session, duplicate_deals
    from kilt.players.reference import player

    if match is not None and hands is not None:
        raise PlayError(f"--match {match} and --hands {hands} are given: leave out one of them")
    if duplicate and match is None:
        raise PlayError("--duplicate is for matches: say how many hands with --match")
    option, hands = ("--match", match) if hands is None else ("--hands", hands)
    if hands is not None and hands < 1:
        raise PlayError(f"{hands} hands cannot be played: use 1 or more, or leave out {option}")
    wanted = None if game is None else load_holdem(game)
    with waiting("the agent sits down …"):
        opponent, rules = player(agent).at(wanted)
    if log and len({*read_names((name, opponent.name))}) < 2:
        raise PlayError(f"you are called {name} as your opponent is: choose another --name for the log")
    seed = random.SystemRandom().randrange(10**6) if seed is None else seed
    screen = _TableScreen(opponent.name, rules=rules.rules, advises=isinstance(opponent, Adviser))
    deals = duplicate_deals(match, seed) if match and duplicate else []
    session = Session(rules, name, opponent, screen, seed, deals)
    with nullcontext() if log is None else closing(NewLog(log)) as lines:
        screen.welcome(session, seed)
        try:
            while hands is None or len(session.won) < hands:
                hand = session.play()
                if lines:
                    if not lines.begun:
                        lines.write(f"# {name} against {opponent.name}, {rules.name}, seed {seed}\n")
                    lines.write(format_log_entry(hand))
                    lines.flush()
        except (EOFError, KeyboardInterrupt):
            screen.leave()
        finally:
            screen.result(session)
            if lines and lines.begun:
                lines.write(f"{Score((session.total, -session.total), (name, opponent.name))}\n")
                screen.line(("the hands are in ", "dim"), str(log), indent=0)
    if match and session.won:
        screen.judge(session)


class _TableScreen:
    """Shows a poker table with Rich, and reads the person's actions from standard input. See `play.person.Screen`."""

    def __init__(self, opponent: str, *, rules: GameDef, advises: bool) -> None:
        self.opponent, self.advises = opponent, advises
        self.limit, self.big_blind = rules.betting == "limit", rules.big_blind
        self.live = sys.stdin.isatty()
        self.console = out if self.live else Console(color_system=None, highlight=False)
        self.colours = bool(self.console.color_system) and not self.console.no_color
        try:
            "♠·±█".encode(self.console.encoding)
            self.letters = False
        except UnicodeEncodeError:
            self.letters = True
        if hasattr(sys.stdin, "reconfigure"):
            sys.stdin.reconfigure(errors="replace")  # invalid bytes are treated like any other invalid input
        if self.live and self.console.is_terminal:
            with suppress(ImportError):
                import readline  # noqa: F401  # input() then has a history, and the cursor moves

    def welcome(self, session: Session, seed: int) -> None:
        """Print the game, the players and the blinds."""
        from kilt.players.agents import describe_strategy

        rules = session.game.rules
        low, high = sorted(rules.blinds)
        blinds = f"antes of {low:,}" if low == high else f"blinds {low:,} and {high:,}"
        which = f" ({strategy})" if (strategy := describe_strategy(session.agent)) else ""
        title = f" · you against {self.opponent}{which} · {blinds} · seed {seed}"
        self.line((session.game.name, "bold"), title, indent=0)
        self.line(("h explains what you can type, q leaves", "dim"), indent=0)

    def begin(self, number: int, seat: str, hand: tuple[str, ...]) -> None:
        """Print a line above a new hand, and the person's cards."""
        self.line()
        title = self._text(("hand ", "dim"), (f"{number + 1}", "bold"), (f" · you are {_article(seat)}", "dim"))
        self.console.print(Rule(title, align="left", style="dim", characters="-" if self.letters else "─"))
        self.line(f"{'you hold':<{LABEL}}", *self._cards(hand))

    def acted(self, mine: bool, words: str) -> None:
        """Print an action in one line."""
        self.line(("You", "cyan") if mine else (self.opponent, "magenta"), f" {words}")

    def dealt(self, name: str, board: tuple[str, ...], hand: tuple[str, ...], made: str) -> None:
        """Print the board with the person's cards below it."""
        self.line()
        self.line(f"{name:<{LABEL}}", *self._cards(board))
        self.line(f"{'you hold':<{LABEL}}", *self._cards(hand), f"  {made}")

    def ask(self, view: TurnView, *, again: bool) -> str:
        """Print the state of the hand and the legal actions, and read the answer.

        If asked again, only the prompt is printed.
        """
        if not again:
            self.line()
            parts = [f"pot {view.pot:,}"]
            if view.stacks:
                parts += [f"you have {view.stacks[0]:,}", f"{self.opponent} has {view.stacks[1]:,}"]
            self.line((" · ".join(parts), "dim"))
            self._offer(view)
        if self.live:
            try:
                return input(PROMPT)
            except (EOFError, KeyboardInterrupt):
                self.line()  # the prompt's line is still open
                raise
        typed = sys.stdin.readline()
        if not typed:
            raise EOFError
        typed = typed.rstrip("\r\n")
        self.line(PROMPT + "".join(letter if letter.isprintable() else "·" for letter in typed[:80]), indent=0)
        return typed

    def _offer(self, view: TurnView) -> None:
        """Print the possible actions on as many lines as needed, without splitting any of them."""
        offers = [(key, words + (f", or {hint}" if hint else "")) for key, words, hint in view.choices]
        offers += [("?", f"what {self.opponent} would do in your place")] if self.advises else []
        offers += [("q", "leave")]
        row: list[Part] = []
        room = self.console.width - INDENT
        for key, words in offers:
            length = len(key) + len(words) + len("  · ")
            if row and room < length:
                self.line(*row)
                row, room = [], self.console.width - INDENT
            row += [*([" · "] if row else []), (key, "bold"), f" {words}"]
            room -= length
        self.line(*row)

    def tell(self, text: str) -> None:
        """Print what was wrong with the person's input."""
        self.line((text[:1].upper() + text[1:], "yellow"))

    def advise(self, advice: list[tuple[str, float]] | None) -> None:
        """Print the agent's action probabilities as bars."""
        if advice is None:
            self.line((f"{self.opponent} has no advice: only agents with a strategy have some", "yellow"))
            return
        self.line((f"with your cards {self.opponent} would", "dim"))
        width = max(len(words) for words, _ in advice)
        for words, share in advice:
            self.line(f"{words:<{width}}  {share:>6.1%}  ", ("█" * round(20 * share), "cyan"), indent=2 * INDENT)

    def explain(self) -> None:
        """Print the possible inputs at the table."""
        width = max(len(keys) for keys, _ in HELP)
        for keys, what in HELP_LIMIT if self.limit else HELP:
            self.line((f"{keys:<{width}}", "bold"), f"  {what}")

    def end(self, ending: Ending) -> None:
        """Print both hands, the result, and the running total."""
        if ending.shown:
            self.line()
            width = max(LABEL, len(self.opponent) + 2)
            for who, (cards, made) in zip(("you", self.opponent), ending.shown, strict=True):
                self.line(f"{who:<{width}}", *self._cards(cards), f"  {made}")
        won, played = ending.won, ending.played
        words = f"You win {won:,}" if won > 0 else f"You lose {-won:,}" if won else "The pot is split"
        total = f" · total {self._money(ending.total)} after {played:,} hand{'s' if played > 1 else ''}"
        self.line((words, f"bold {_colour(won)}"), (total, "dim"))

    def leave(self) -> None:
        """Print that the person has left, so that the unfinished hand does not count."""
        self.line(("you leave; the unfinished hand does not count", "dim"))

    def result(self, session: Session) -> None:
        """Print the result of the session."""
        from kilt.evaluate.stats import estimate_mean

        blind, won = session.game.rules.big_blind, session.won
        self.line()
        self.line(("result", "bold"), indent=0)
        if not won:
            self.line("no hand came to its end")
            return
        self.line(f"hands     {len(won):,}")
        self.line("won       ", (self._money(session.total), f"bold {_colour(session.total)}"))
        rate = estimate_mean([chips * 1000 / blind for chips in won])
        margin, tail = (f" ± {rate.margin:,.0f}", ", 95% interval") if isfinite(rate.margin) else ("", "")
        self.line(f"per hand  {rate.mean:+,.0f}{margin} thousandths of a big blind (mbb/h){tail}")
        for what, number in ("best", session.best_hand), ("worst", session.worst_hand):
            self.line(f"{what:<8}  {won[number]:+,} chips in hand {number + 1}")
        if len(won) < MANY or rate.margin > NARROW:
            need = len(won) * (rate.margin / NARROW) ** 2
            tail = f": for ± {NARROW} it takes some {float(f'{need:.1g}'):,.0f}" if len(won) < need < inf else ""
            self.line(("few hands say little" + tail, "dim"))

    def judge(self, session: Session) -> None:
        """Print the person's raw winnings, and estimates with most of the luck removed."""
        from kilt.evaluate.deserved import deserved_winnings
        from kilt.evaluate.portfolio import Portfolio
        from kilt.play.agent import PolicyAgent, has_policy

        self.line()
        self.line(("judged", "bold"), indent=0)
        agent = session.agent
        judged = agent if isinstance(agent, Portfolio | PolicyAgent) else None
        if judged is None or not (isinstance(judged, Portfolio) or has_policy(judged, session.game)):
            self.line(f"the strategy of {self.opponent} is unknown, so there is no luck-adjusted result")
            return
        with waiting("learning what states are worth, and judging …"):
            found = deserved_winnings(session.game, session.hands, judged, session.duplicate)
        for what, row in zip(("won", *["deserved"] * len(found.rows)), found.rows, strict=False):
            margin = f" ± {row.won.margin:,.0f}" if isfinite(row.won.margin) else ""
            self.line(f"{what:<8}  {row.won.mean:+,.0f}{margin} mbb/h", (f", {row.estimator.name}", "dim"))
        if found.duplicate:
            self.line(("all deals came twice: the two hands of one count together", "dim"))
        for reason, count in found.left_out.items():
            self.line((f"{count:,} hand{'s' if count != 1 else ''} skipped: {reason}", "yellow"))

    def line(self, *parts: Part, indent: int = INDENT) -> None:
        """Print one line of text without markup, wrapped if it is long."""
        for row in self._text(*parts).wrap(self.console, max(self.console.width - indent, 20)) or [Text()]:
            row.rstrip()
            self.console.print(Text(" " * indent if row else "") + row, highlight=False, soft_wrap=True)

    def _money(self, chips: int) -> str:
        return f"{chips:+,} chips, {chips / self.big_blind:+,.1f} big blinds"

    def _text(self, *parts: Part) -> Text:
        text = Text()
        for part in parts:
            words, style = (part, "") if isinstance(part, str) else part
            if self.letters:
                words = words.translate(LETTERS).encode(self.console.encoding, "replace").decode(self.console.encoding)
            text.append(words, style)
        return text

    def _cards(self, cards: tuple[str, ...]) -> list[Part]:
        """Return cards in four colours, or as plain names if the output has no colours."""
        parts: list[Part] = []
        for place, card in enumerate(cards):
            rank, (sign, colour) = card[0], SUITS[card[1]]
            parts += [" "] if place else []
            parts += [(f" {rank}{sign} ", PAPER.format(colour))] if self.colours else [rank + sign]
        return parts


def _article(seat: str) -> str:
    return f"the {seat}" if seat.endswith("blind") else seat


def _colour(chips: int) -> str:
    return "green" if chips > 0 else "red" if chips < 0 else ""
