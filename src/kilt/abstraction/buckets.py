"""Card abstractions, which map hands and boards to buckets of similar hands.

Buckets are on disk, in a table for each round with a row for each canonical board and a column for each hand. Finding
the buckets of all hands on a board takes one suit permutation and one row. Tables are mapped into memory, so that
opening an abstraction is fast.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kilt import artifact
from kilt.abstraction.classes import BoardClasses, CodeBuckets
from kilt.abstraction.features import FEATURES, Deal
from kilt.abstraction.plan import Plan, PublicPlan, load_plan, parse_plan
from kilt.abstraction.rounds import RoundBuckets, remedy_for
from kilt.arrays import Array, IntArray
from kilt.cards.deck import Deck
from kilt.errors import AbstractionError, ArtifactError, KiltError, file_errors

KIND = "card abstraction of a round"
CLASSES = "classes of boards"
DESCRIPTION = "abstraction.json"


@dataclass(frozen=True)
class AbstractionSpec:
    """The specification of a card abstraction: the cards of the game, and a plan for its buckets.

    Parameters
    ----------
    name : str
        The user's name for the abstraction.
    deal : Deal
        Deck, private cards and public cards of each round.
    plan : Plan
        Features and numbers of buckets.
    """

    name: str
    deal: Deal
    plan: Plan

    @classmethod
    def from_name(cls, plan: str, deal: Deal) -> AbstractionSpec:
        """Create a specification from a .toml file or a plan name such as ``"IR-KE-KO 169-50-50-50"``."""
        name = Path(plan).stem if plan.endswith(".toml") else plan.strip()
        found = load_plan(plan, deal.board_cards)
        if not plan.endswith(".toml") and any(step.feature == "ochs" for this in found.rounds for step in this.steps):
            # A name does not give the number of clusters of opponents, so the default is reduced to the number of
            # hands.
            found = replace(found, opponents=min(found.opponents, len(deal.holdings((0,)))))
        return cls(name, deal, found)

    @property
    def fingerprint(self) -> str:
        """A hash of the cards and the plan. Equal hashes mean equal buckets."""
        return artifact.fingerprint(*map(artifact.stable_repr, (self.deal, self.plan)))

    def data(self) -> dict[str, Any]:
        """Return the specification as a dict for JSON."""
        deal = self.deal
        said = {"ranks": deal.deck.ranks, "suits": deal.deck.suits, "hole_cards": deal.hole_cards}
        return {
            "name": self.name,
            "deal": said | {"board_cards": list(deal.board_cards)},
            "plan": self.plan.toml(),
            "fingerprint": self.fingerprint,
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> AbstractionSpec:
        """Create a specification from the dict that `data` returned.

        Raises ValueError, LookupError or KiltError if the data are invalid.
        """
        deal = data["deal"]
        cards = Deck(deal["ranks"], deal["suits"]), deal["hole_cards"], tuple(deal["board_cards"])
        found = cls(data["name"], Deal(*cards), parse_plan(tomllib.loads(data["plan"])))
        if data["fingerprint"] != found.fingerprint:
            raise ValueError(f"its fingerprint is {found.fingerprint}, but the description says {data['fingerprint']}")
        return found

    @classmethod
    def read(cls, path: Path) -> AbstractionSpec:
        """Read the specification of a card abstraction from its folder.

        Works for unfinished abstractions, too.

        Raises AbstractionError if the folder holds no abstraction, or a damaged one.
        """
        place = path / DESCRIPTION
        if not place.is_file():
            raise AbstractionError(f"there is no abstraction at {path}: check the name, or build it first")
        with artifact.os_errors(f"{place} cannot be read"):
            text = place.read_bytes()
        try:
            found = cls.from_data(json.loads(text))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError, KiltError) as error:
            raise AbstractionError(f"{place} is damaged ({error}): build the abstraction in another folder") from None
        return found


@dataclass(frozen=True)
class CardAbstraction:
    """A finished card abstraction: it maps a hand and a board to a bucket of similar hands.

    Parameters
    ----------
    identity : AbstractionSpec
        The plan and the cards that it was made from.
    rounds : tuple of RoundBuckets
        Tables, mapped from disk.
    """

    identity: AbstractionSpec
    rounds: tuple[RoundBuckets, ...]

    @classmethod
    @file_errors()
    def load(cls, path: str | Path, *, check: bool = False) -> CardAbstraction:
        """Open the card abstraction in a folder.

        Parameters
        ----------
        path : str or Path
            Its folder.
        check : bool
            Read all files and compare checksums, including files that were checked before.

        Returns
        -------
        CardAbstraction

        Raises
        ------
        AbstractionError
            A round is missing or damaged.
        """
        path = Path(path)
        identity = AbstractionSpec.read(path)
        rounds = []
        for r in range(len(identity.plan.rounds)):
            try:
                rounds.append(load_round(path, identity, r, check=check))
            except ArtifactError as error:
                if round_folder(path, r).exists():
                    raise AbstractionError(f"round {r + 1} of {path} cannot be used: {error}") from None
                raise AbstractionError(
                    f"round {r + 1} of {path} is not built yet: continue to build the abstraction in this folder"
                ) from None
        return cls(identity, tuple(rounds))

    def packed(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Pack the abstraction into small arrays and a description, for storing an agent in a single file.

        `unpacked` reads them. If buckets of the last round depend on strength alone, their table is omitted, since
        strengths are fast to compute.

        Raises AbstractionError if the abstraction has classes of boards.
        """
        arrays: dict[str, Array] = {}
        last = len(self.rounds) - 1
        for r, this in enumerate(self.rounds):
            if this.coded:
                raise AbstractionError(f"{self.name} has classes of boards, and cannot be packed: export a folder")
            by, steps = this.by_strength, self.identity.plan.rounds[r].steps
            if by is None and r == last and [step.feature for step in steps] == ["ehs"]:
                by = this.strengths()
            arrays[f"sizes-{r + 1}"] = this.sizes
            arrays |= {f"buckets-{r + 1}": this.table} if by is None else {f"strength-{r + 1}": by}
        return arrays, self.identity.data()

    @classmethod
    def unpacked(cls, arrays: Mapping[str, Array], said: Mapping[str, Any], source: Path) -> CardAbstraction:
        """Rebuild an abstraction from what `packed` returned.

        Raises ValueError, KeyError or AbstractionError if the data are invalid.
        """
        identity = AbstractionSpec.from_data(said)
        rounds = []
        for r in range(len(identity.plan.rounds)):
            holdings = identity.deal.holdings(board_layout(identity.plan, identity.deal, r))
            by, sizes = arrays.get(f"strength-{r + 1}"), arrays[f"sizes-{r + 1}"]
            hands = comb(holdings.deck.size, holdings.hole_cards)
            table = np.zeros((0, hands), dtype=np.uint8) if by is not None else arrays[f"buckets-{r + 1}"]
            this = RoundBuckets(holdings, table, sizes, None, None, {}, None, source, by)
            if by is None:
                _require_fitting(this)
                this.require_valid_entries()
            elif by.min() < 0 or by.max() >= len(sizes) or by.shape != (identity.deal.top_strength + 1,):
                raise ValueError(f"strength-{r + 1} does not fit its buckets")
            rounds.append(this)
        return cls(identity, tuple(rounds))

    @property
    def fingerprint(self) -> str:
        """A hash of the cards and the plan. Equal hashes mean equal buckets."""
        return self.identity.fingerprint

    @property
    def name(self) -> str:
        """The user's name for the abstraction."""
        return self.identity.name

    @property
    def numbers(self) -> tuple[int, ...]:
        """The number of buckets in each round."""
        return tuple(this.buckets for this in self.rounds)

    @property
    def each(self) -> tuple[CardAbstraction, CardAbstraction]:
        """The card abstraction of each player, as a tuple.

        Both players share this one, so the tuple contains it twice.
        """
        return self, self

    def look_up(self, r: int, boards: IntArray, hands: IntArray, buckets: npt.NDArray[np.uint32]) -> None:
        """Look up the buckets of both players' hands in round `r`, for a batch of deals.

        They are written to `buckets`.

        `boards` is [deal, card]; `hands` and `buckets` are [deal, player].
        """
        self.rounds[r].look_up(boards, hands, buckets)

    def of_first_rounds(self, deal: Deal) -> CardAbstraction:
        """Return a copy of the abstraction without its last rounds, for a shorter version of the game.

        Raises AbstractionError if the abstraction does not begin with the rounds of that game.
        """
        mine, rounds = self.identity.deal, len(deal.board_cards)
        if mine != replace(deal, board_cards=(*deal.board_cards, *mine.board_cards[rounds:])):
            raise AbstractionError(f"{self.identity.name} does not begin with the rounds of the game")
        return CardAbstraction(replace(self.identity, deal=deal), self.rounds[:rounds])

    def bucket(self, hand: str | Sequence[str | int], board: str | Sequence[str | int] = ()) -> int:
        """Return the bucket of a hand on a board.

        Parameters
        ----------
        hand : str or sequence
            Private cards: text such as ``"AsKh"``, or the names or numbers of the cards.
        board : str or sequence
            Public cards: none, or those of a round.

        Returns
        -------
        int
            From 0 to the number of buckets of the round, minus 1.

        Raises
        ------
        CardError
            These cards cannot be dealt.
        AbstractionError
            No round has a board of this size.
        """
        deal = self.identity.deal
        public = deal.deck.numbers(board)
        r, mine = self.round_of(public), deal.deck.numbers(hand, deal.hole_cards, dead=public)
        return int(self.rounds[r].look_up_board(public)[deal.deck.hole_index(mine)])

    def round_of(self, board: str | Sequence[str | int]) -> int:
        """Return the betting round of a board from its number of cards.

        The first round is 0. Raises AbstractionError if there is no such round.
        """
        sizes, public = self.identity.deal.board_sizes, self.identity.deal.deck.numbers(board)
        if len(public) not in sizes:
            raise AbstractionError(f"no round has a board of {len(public)} cards: use {', '.join(map(str, sizes))}")
        return sizes.index(len(public))


@dataclass(frozen=True)
class AsymmetricAbstraction:
    """Two card abstractions for one game, one for each player."""

    each: tuple[CardAbstraction, CardAbstraction]

    @property
    def fingerprint(self) -> str:
        """A hash of both players' abstractions."""
        return artifact.fingerprint(*(cards.fingerprint for cards in self.each))

    @property
    def name(self) -> str:
        """The names of the two players' abstractions, as given by the user."""
        return " and ".join(cards.name for cards in self.each)

    def look_up(self, r: int, boards: IntArray, hands: IntArray, buckets: npt.NDArray[np.uint32]) -> None:
        """Look up the buckets of both players' hands in round `r`, for a batch of deals.

        They are written to `buckets`.

        `boards` is [deal, card]; `hands` and `buckets` are [deal, player].
        """
        for player, cards in enumerate(self.each):
            own = slice(player, player + 1)
            cards.look_up(r, boards, hands[:, own], buckets[:, own])


PlayerAbstractions: TypeAlias = CardAbstraction | AsymmetricAbstraction  # for both players, or for each


def find_abstraction(name: str, begun: Path | None, deal: Deal) -> Path | AbstractionSpec:
    """Find a card abstraction by name. Returns its folder, or a specification to build it from.

    `begun` is the folder of an abstraction that is perhaps unfinished, whose specification takes precedence.
    """
    if (Path(name) / DESCRIPTION).is_file():
        return Path(name)
    unfinished = begun and (begun / DESCRIPTION).is_file()
    return AbstractionSpec.read(begun) if begun and unfinished else AbstractionSpec.from_name(name, deal)


def load_abstractions(folders: Sequence[Path], *, check: bool = False) -> PlayerAbstractions:
    """Load a game's card abstraction from disk, or two of them if the players' abstractions differ.

    Parameters
    ----------
    folders : sequence of Path
        One abstraction for both players, or one for each.
    check : bool
        Read all files and compare checksums, including files that were checked before.

    Returns
    -------
    CardAbstraction or AsymmetricAbstraction
    """
    found = [CardAbstraction.load(folder, check=check) for folder in folders]
    return found[0] if len(found) == 1 else AsymmetricAbstraction((found[0], found[1]))


def board_layout(plan: Plan, deal: Deal, r: int) -> tuple[int, ...]:
    """Return the group sizes of a round's board cards, such as (3, 1) for a flop and a turn.

    The order of the cards within a group does not matter.

    Boards are kept as dealt, round by round, if the plan remembers earlier rounds or looks at their boards; otherwise
    their cards form one set.

    >>> from kilt.abstraction.plan import plan_named
    >>> [board_layout(plan_named("PR-KE-KO 5-5-5-5", (0, 3, 1, 1)), Deal(), r) for r in range(4)]
    [(0,), (3,), (3, 1), (3, 1, 1)]
    """
    if any(FEATURES[step.feature].as_dealt for step in plan.rounds[r].steps):
        return tuple(added for added in deal.board_cards[: r + 1] if added) or (0,)
    public = plan.public_at(r)
    if r == 0 or not plan.rounds[r].recall:
        if public is None or plan.uses_codes(r):
            return (deal.board_sizes[r],)
        known = layout_with_classes(plan, deal, public)
        return known if sum(known) == deal.board_sizes[r] else (*known, deal.board_sizes[r] - sum(known))
    before = board_layout(plan, deal, r - 1)
    added = deal.board_cards[r]
    return before if not added else (added,) if before == (0,) else (*before, added)


def layout_with_classes(plan: Plan, deal: Deal, public: PublicPlan) -> tuple[int, ...]:
    """Return the group sizes of a round's board cards in an abstraction with board classes.

    The cards up to the first round with classes form one set, those up to the next such round another, and so on.

    >>> from dataclasses import replace
    >>> from kilt.abstraction.plan import plan_named
    >>> plan = plan_named("IR-KE-KO 169-5-5-5", (0, 3, 1, 1))
    >>> flop, river = PublicPlan(2, 10), PublicPlan(4, 10)
    >>> layout_with_classes(replace(plan, public=(flop, river)), Deal(), river)
    (3, 2)
    """
    sizes = [0, *(deal.board_sizes[one.round - 1] for one in plan.public if one.round <= public.round)]
    return tuple(np.diff(sizes).tolist())


def round_folder(path: Path, r: int) -> Path:
    """Return the folder that holds the buckets of a given round."""
    return path / f"round-{r + 1}"


def load_round(path: Path, identity: AbstractionSpec, r: int, *, check: bool = False) -> RoundBuckets:
    """Load the buckets of one round from disk.

    With `check`, read the whole table and check it for damage.

    Without `check`, entries are compared with their bounds when they are looked up: see
    `RoundBuckets.require_valid_index`.
    """
    folder = round_folder(path, r)
    found = artifact.read(folder, KIND, check=check, private=True, remedy=remedy_for(folder))
    if found.inputs.get("abstraction") != identity.fingerprint:
        raise ArtifactError(
            f"{folder} belongs to abstraction {found.inputs.get('abstraction')}, not {identity.fingerprint}: "
            f"{remedy_for(folder)}"
        )
    holdings = identity.deal.holdings(board_layout(identity.plan, identity.deal, r))
    arrays, coded = found.arrays, None
    public = identity.plan.public_at(r)
    if public and "of_class" in arrays:
        coded = CodeBuckets(load_classes(path, identity, public, check=check), arrays["of_class"])
    with artifact.damage_errors(folder, remedy_for(folder)):
        means = arrays.get("centroids"), arrays.get("apart")
        this = RoundBuckets(holdings, arrays["buckets"], arrays["sizes"], *means, found.figures, coded, folder)
        _require_fitting(this)
    if check:
        this.require_valid_entries()
    return this


def _require_fitting(this: RoundBuckets) -> None:
    """Raise ValueError if the arrays of a round do not fit its boards and hands, or each other."""
    index, number = this.holdings.index, this.buckets
    shapes = {
        "buckets": (this.table, (len(this.holdings.boards), index.moved.shape[1])),
        "sizes": (this.sizes, (number,)),
    }
    if this.bucket_distances is not None:
        block = this.bucket_distances.shape[-1]
        shapes["apart"] = this.bucket_distances, (number, number if not block or number % block else block)
    if this.centroids is not None:
        shapes["centroids"] = this.centroids, (number, *this.centroids.shape[1:2])
    if this.coded:
        classes, bucket = this.coded
        shapes["of_class"] = bucket, (classes.number, *bucket.shape[1:2])
        if bucket.min(initial=0) < 0 or bucket.max(initial=0) >= number:
            raise ValueError(f"of_class has buckets outside of 0 to {number - 1}")
    for name, (array, shape) in shapes.items():
        if array is not None and array.shape != shape:
            raise ValueError(f"{name} has shape {array.shape}, not {shape}")
    if this.table.dtype.kind != "u":
        raise ValueError(f"buckets are of type {this.table.dtype}")


def classes_folder(path: Path, public: PublicPlan) -> Path:
    """Return the folder that holds the classes of boards of a given round."""
    return path / f"boards-{public.round}"


def load_classes(path: Path, identity: AbstractionSpec, public: PublicPlan, *, check: bool = False) -> BoardClasses:
    """Load the board classes of an abstraction from disk.

    With `check`, read the whole file and check it for damage.
    """
    holdings = identity.deal.holdings(layout_with_classes(identity.plan, identity.deal, public))
    folder = classes_folder(path, public)
    found = artifact.read(folder, CLASSES, check=check, private=True, remedy=remedy_for(folder))
    if found.inputs.get("abstraction") != identity.fingerprint:
        raise ArtifactError(
            f"{folder} belongs to abstraction {found.inputs.get('abstraction')}, not {identity.fingerprint}: "
            f"{remedy_for(folder)}"
        )
    number = identity.plan.classes_at(public.round - 1)
    with artifact.damage_errors(folder, remedy_for(folder)):
        labels, distances = found.arrays["classes"], found.arrays.get("distances")
        if labels.shape != (len(holdings.boards),) or labels.dtype.kind != "i":
            raise ValueError(f"classes have shape {labels.shape}, not {(len(holdings.boards),)}")
        if labels.min() < 0 or labels.max() >= number:
            raise ValueError(f"classes are numbered {labels.min()} to {labels.max()}, not 0 to {number - 1}")
    return BoardClasses(holdings, labels, number, distances, found.figures)
