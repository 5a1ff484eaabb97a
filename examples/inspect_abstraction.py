"""Build a card abstraction, and see which hands share a bucket.

    python examples/inspect_abstraction.py

Royal hold'em has twenty cards, so that this takes seconds; "holdem.limit.2p" has the full deck, and takes minutes.
"""

from collections import defaultdict
from itertools import combinations

import kilt

GAME, NAME = "royal.limit.2p", "IR-KE-KO 15-20-20-20"
HAND, FLOP = "AsKs", "QsTdJh"


def main() -> None:
    """Show the buckets of the first round, and where a hand is on a flop."""
    cards = kilt.build_abstraction(NAME, GAME)
    deck = cards.identity.deal.deck
    print(f"{cards.name}: {', '.join(map(str, cards.numbers))} buckets, fingerprint {cards.fingerprint}")

    together = defaultdict(list)
    for hand in combinations(range(deck.size), 2):
        together[cards.bucket(hand)].append(hand)
    for bucket, hands in sorted(together.items()):
        ranks = {"".join(sorted((deck.name([card])[0] for card in hand), key="AKQJT".index)) for hand in hands}
        print(f"  bucket {bucket:2}: {len(hands):3} hands, {' '.join(sorted(ranks))}")

    board = deck.cards(FLOP)
    bucket = cards.bucket(deck.cards(HAND), board)
    others = [
        deck.name(hand)
        for hand in combinations(sorted(set(range(deck.size)) - set(board)), 2)
        if cards.bucket(hand, board) == bucket
    ]
    print(f"{HAND} on {FLOP} is in bucket {bucket}, with {', '.join(others[:8])}")


if __name__ == "__main__":
    main()
