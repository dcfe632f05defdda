"""A mover that needs no model: it reads the question, and errs with a seeded probability.

Its errors are of the worst kind for a vote: at one step they are always the same wrong move. Where
it is told to, it gives no move at all now and then, which is a red flag.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from towers import Move

_MASK = 2**64 - 1


class NoisyMover:
    """Answers questions of `Towers`, the same in every run with the same seed.

    Args:
        p: How often a move it gives is right.
        valid: How often it gives a move.
        seed: Seed of its errors.
    """

    def __init__(self, p: float, valid: float = 1.0, seed: int = 0) -> None:
        self._no_move = int((1 - valid) * 2**64)
        self._wrong = self._no_move + int(valid * (1 - p) * 2**64)
        self._seed = seed

    def answer(self, question: str, step: int, draw: int) -> str:
        """Answer a question.

        Args:
            question: The question.
            step: Number of the step, and with `draw` the seed of this answer.
            draw: Number of the draw.
        """
        luck = _mixed(self._seed, step, draw)
        if luck < self._no_move:
            return "It depends on what lies on the other pegs."
        disk, start, end = next_move(question)
        if luck < self._wrong:
            start, end = end, start
        return f'{{"move": [{disk}, {start}, {end}]}}'


def next_move(question: str) -> Move:
    """Find the move by the rule, from the text of a question alone."""
    one, two, three, previous, direction = question.split("\n")
    tops = [_top(line) for line in (one, two, three)]
    small = tops.index(1)
    if previous.startswith("previous move: disk 1 "):
        start, end = (peg for peg in range(3) if peg != small)
        if tops[start] > tops[end]:
            start, end = end, start
        return tops[start], start, end
    onward = 1 if direction.endswith("0 to 1 to 2 to 0") else 2
    return 1, small, (small + onward) % 3


def _top(line: str) -> int:
    """Read the top disk of a peg; an empty peg takes every disk, as if a huge one lay on it."""
    disk = line[line.rindex(" ") + 1 :]
    return int(disk) if disk else 2**31


def _mixed(seed: int, step: int, draw: int) -> int:
    """Mix three numbers into one of 64 bits that looks random."""
    value = (
        seed * 0x9E3779B97F4A7C15 + step * 0xD1B54A32D192ED03 + draw * 0x8CB92BA72F3D8DD7
    ) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)
