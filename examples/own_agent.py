"""Write an agent: a class with a name and a method, in a duplicate match and over the protocol of the ACPC.

python examples/own_agent.py
kilt match examples/own_agent.py:Tight always-call --game holdem.limit.2p --hands 2000
kilt agent examples/own_agent.py:Tight HOST PORT --game holdem.limit.2p      # for any ACPC dealer
"""

from threading import Thread

import kilt
from kilt.games.playable import load_holdem
from kilt.play.net import play_agent, serve

GAME = "holdem.limit.2p"
GOOD = kilt.FULL.range("77+,A9s+,KTs+,QJs,ATo+,KJo+")


class Tight:
    """Raises with good starting hands, calls with anything that beats them later, and folds the rest."""

    name = "tight"

    def act(self, observation: kilt.Observation) -> str:
        """A legal action as the ACPC writes it: f, c, r."""
        position = observation.position
        hand = kilt.FULL.name(observation.hand)
        board = kilt.FULL.name(observation.board)
        if position.round == 0:
            wanted = "r" if GOOD[kilt.FULL.hole_index(observation.hand)] > 0 else "f"
        else:
            share = kilt.equity(hand, board=board).equity
            wanted = "r" if share > 0.7 else "c" if share > 0.45 else "f"
        legal = position.actions()
        return wanted if wanted in legal else "c"


def main() -> None:
    """Play against a baseline here, then both over the network of this machine."""
    match = kilt.play_match(Tight(), "always-raise", hands=200, game=GAME)
    print(f"tight wins {kilt.win_rate(match)} mbb/h from always-raise in {match.hands} duplicate hands")

    game, players = load_holdem(GAME), (Tight(), kilt.player("always-raise").agent)
    threads: list[Thread] = []

    def connect(ports: tuple[int, int]) -> None:
        for agent, port in zip(players, ports, strict=True):
            threads.append(Thread(target=play_agent, args=(agent, game, "127.0.0.1", port)))
            threads[-1].start()

    score = serve(game, hands=50, names=("tight", "always-raise"), announce=connect)
    for thread in threads:
        thread.join()
    print(f"over the network, 50 hands: {score}")


if __name__ == "__main__":
    main()
