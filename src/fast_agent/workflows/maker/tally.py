"""Tally: the votes so far, and who is ahead by how many."""

from __future__ import annotations


class Tally:
    """Counts votes until one answer is `k` ahead of every other.

    Args:
        k: Votes the winner must be ahead by.

    Attributes:
        votes: Votes by key, in the order the keys were first voted for.
        leader: The key with the most votes; of several, the one that had as many first.
        margin: How many votes the leader is ahead of the next.
    """

    __slots__ = ("_second", "k", "leader", "margin", "votes")

    def __init__(self, k: int) -> None:
        self.k = k
        self.votes: dict[str, int] = {}
        self.leader: str | None = None
        self.margin = 0
        self._second = 0

    @property
    def decided(self) -> bool:
        """Whether the leader has won."""
        return self.margin >= self.k

    def add(self, key: str) -> None:
        """Count a vote."""
        votes = self.votes
        count = votes.get(key, 0) + 1
        votes[key] = count
        leader = self.leader
        if leader is None or key == leader:
            self.leader = key
            self.margin = count - self._second
            return
        most = votes[leader]
        if count > most:
            self.leader, self._second = key, most
        elif count > self._second:
            self._second = count
        self.margin = votes[self.leader or key] - self._second
