"""The towers: where the disks lie, how that is put to a mover, and what a move does to them."""

from __future__ import annotations

from typing import TypeAlias

Move: TypeAlias = tuple[int, int, int]
"""A disk, the peg it leaves, the peg it goes to."""


class Towers:
    """Three pegs with disks, of which 1 is the smallest.

    Args:
        disks: How many there are.
        pegs: What lies on each peg from the bottom up; None puts all disks on peg 0.
        previous: The move made last, or None.
    """

    def __init__(
        self, disks: int, pegs: list[list[int]] | None = None, previous: Move | None = None
    ) -> None:
        self.disks = disks
        self.pegs = pegs or [list(range(disks, 0, -1)), [], []]
        self.previous = previous
        # Disk 1 goes round in this direction for the tower to end on peg 2.
        self._direction = "0 to 1 to 2 to 0" if disks % 2 == 0 else "0 to 2 to 1 to 0"

    @property
    def solved(self) -> bool:
        """Whether all disks lie on peg 2."""
        return len(self.pegs[2]) == self.disks

    def question(self) -> str:
        """Put the next move to a mover that knows nothing else."""
        one, two, three = (" ".join(map(str, peg)) for peg in self.pegs)
        previous = (
            "none" if self.previous is None else "disk {} from {} to {}".format(*self.previous)
        )
        return (
            f"peg 0: {one}\npeg 1: {two}\npeg 2: {three}\n"
            f"previous move: {previous}\ndirection of disk 1: {self._direction}"
        )

    def make(self, move: Move) -> None:
        """Make a move.

        Raises:
            ValueError: The disk is not on top of that peg, or would lie on a smaller one.
        """
        disk, start, end = move
        source, target = self.pegs[start], self.pegs[end]
        if not source or source[-1] != disk or (target and target[-1] < disk):
            raise ValueError(f"disk {disk} cannot go from peg {start} to peg {end}")
        target.append(source.pop())
        self.previous = move


def right_move(number: int, disks: int) -> Move:
    """Return a move of the shortest solution by its number, from 1, to check votes against."""
    disk = (number & -number).bit_length()
    start, end = (number & (number - 1)) % 3, ((number | (number - 1)) + 1) % 3
    if disks % 2 == 0:
        # An even tower ends on the other peg: what is said of 1 holds for 2.
        start, end = -start % 3, -end % 3
    return disk, start, end
