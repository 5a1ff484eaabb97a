"""Find the position that follows a line of actions and cards in a spot."""

from __future__ import annotations

from kilt.errors import RunError, quoted
from kilt.games.game import CHANCE, REVEAL, TERMINAL
from kilt.games.subgame import Subgame
from kilt.spots.line import action_of, line_words
from kilt.tree.navigation import NavigableTree, TreePosition

ANY = "*"  # stands for all cards in a line


class SpotTree(NavigableTree):
    """The public tree of a spot, in which lines such as ``b50% c / 7d`` lead to positions."""

    @property
    def subgame(self) -> Subgame:
        """The game that begins at the spot: its board, pot, stacks and ranges."""
        assert isinstance(self.game.game, Subgame)
        return self.game.game

    def find_position(self, line: str) -> TreePosition:
        """Return the position that follows a line of actions and cards, such as ``b50% c / 7d``.

        Raises RunError if the line is not in the tree, or if it leads to several boards.
        """
        found = self.positions(line)
        if ANY in line_words(line):
            raise RunError(f"the line {quoted(line)} leads to {len(found)} boards: name the cards after the /")
        return found[0]

    def positions(self, line: str) -> list[TreePosition]:
        """Return all positions that follow a line, which can leave cards open, as in ``b50% c / *``.

        There are several if the line has `ANY` instead of cards: one for each board that may follow, up to suits.
        """
        found, rest = [self.start], line_words(line)
        while rest:
            word = rest.pop(0)
            if word != REVEAL:
                found = [self._act(place, word, line) for place in found]
                continue
            if not rest or found[0].position.actor != CHANCE:
                over = "the hand is over" if found[0].position.actor == TERMINAL else "a round is not over"
                why = f"{over} there" if rest else "no cards follow"
                raise RunError(f"the line {quoted(line)} has a / where {why}")
            cards = rest.pop(0)
            dealt = [(place, one) for place in found for one in (self.next(place) if cards == ANY else [cards])]
            found = [self.after_deal(place, one) for place, one in dealt]
        return found

    def _act(self, place: TreePosition, word: str, line: str) -> TreePosition:
        """Return the position after an action."""
        position = place.position
        if position.actor < 0:
            raise RunError(f"the line {quoted(line)} has {word!r} where no player acts: separate rounds by /")
        try:
            label = action_of(position, word, self.game.menu)
        except RunError as error:
            raise RunError(f"the line {quoted(line)}: {error}") from None
        return self.act(place, label)

    def after_deal(self, place: TreePosition, text: str) -> TreePosition:
        """Return the position after public cards are dealt.

        Raises GameError if they cannot be dealt.
        """
        deck, rules, r = self.subgame.deck, self.subgame.rules, place.position.round + 1
        return self.deal(place, deck.cards(text, rules.board_cards[r], dead=place.board))
