"""The slow twin of kilt.games.size: plays out every betting sequence, one at a time, by the rules as written."""

from __future__ import annotations

from kilt.games.gamedef import GameDef


def betting(game: GameDef) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Decisions and legal actions of each round."""
    decisions, actions = [0] * game.rounds, [0] * game.rounds

    def play(r: int, player: int, spent: list[int], last_raise: int, raises: int, waiting: int) -> None:
        """Go on from here; `waiting` players must still act before the round is over."""
        broke = [spent[p] == game.stacks[p] for p in (0, 1)]
        other = 1 - player
        bet = max(spent)
        if waiting == 0:
            if r + 1 < game.rounds and not any(broke):
                play(r + 1, game.first_player[r + 1], spent, game.big_blind, 0, 2)
            return
        if broke[player] or (broke[other] and spent[player] == bet):  # no chips, or nobody to bet against
            play(r, other, spent, last_raise, raises, waiting - 1)
            return

        options = [min(bet, game.stacks[player])]  # check or call
        if raises < game.max_raises[r] and not broke[other]:
            for to in range(bet + 1, game.stacks[player] + 1):
                by = to - bet
                if game.betting == "limit":
                    full = by == game.raise_sizes[r]
                    short = by < game.raise_sizes[r] and to == game.stacks[player]
                else:
                    full = by >= last_raise
                    short = to == game.stacks[player]
                if full or short:
                    options.append(to)
        decisions[r] += 1
        actions[r] += len(options) + (spent[player] < bet)  # and fold
        for to in options:
            after = list(spent)
            after[player] = to
            if to > bet:
                play(r, other, after, max(last_raise, to - bet), raises + 1, 1)
            else:
                play(r, other, after, last_raise, raises, waiting - 1)

    play(0, game.first_player[0], list(game.blinds), game.big_blind, 0, 2)
    return tuple(decisions), tuple(actions)
