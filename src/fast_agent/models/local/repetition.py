"""The repetition stop: where a growing answer starts to repeat itself.

A small model that always takes its likeliest word, once it has repeated a passage, continues to
repeat it until its tokens are used up. Two signs of it are searched for, word by word:

- a *loop*: the last words are those just before them, at least three times in all;
- a *passage*: many words in a row, or several whole lines, stand earlier in the answer too, word
  for word. That is what greedy decoding does before it loops; a song does it with its chorus.

Both measure runs: for each distance in words, how many words in a row equal the word at that
distance before them. Marks without letters or digits and the numbers of list items are not words
here, so that `1. Go on` and `2. Go on` are the same. Code repeats itself for good reasons, and so
do the arguments of tool calls: there only long loops count.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

LOOP_CHARS: Final = 60
"""Fewest repeated characters that make a loop, the first time it is said not counted."""

PASSAGE_CHARS: Final = 100
"""Fewest characters of a passage that is repeated anywhere in an answer."""

PASSAGE_LINES: Final = 3
"""Fewest whole lines that make a passage too, however short: items of a list."""

MAX_SENTENCE_CHARS: Final = 300
"""Longest way on to the end of the sentence in which a repetition began."""

PATIENCE_IN_CODE: Final = 16
"""How many times longer a loop must be in code, or where it has no letters, as `0, 0, 0, …`."""

_WORD: Final = re.compile(r"\S+?(?:[\u3001\u3002\uff01\uff0c\uff1f]|(?=\s))")
"""A word with what follows it: white space, or a mark of a script that writes none."""

_LIST_NUMBER: Final = re.compile(r"(?:\A|\n)[ \t]*\d+[.)]\Z")
_SENTENCE_END: Final = re.compile(r"[.!?\u2026\u3002\uff01\uff1f][\"'\u201d\u2019)\]*_]*\Z")


@frozen
class _Word:
    """A word, and where it is in the answer."""

    text: str
    start: int
    end: int


class RepetitionStop:
    """Reads an answer as it grows, and notices when it repeats itself.

    Args:
        passages: Whether a passage that is repeated anywhere counts, not only loops.
    """

    def __init__(self, *, passages: bool = True) -> None:
        self._passages = passages
        self._text = ""
        self._read = 0
        self._words: list[_Word] = []
        self._places: dict[str, list[int]] = {}
        self._runs: dict[int, int] = {}
        self._in_fence = False
        self._in_call = False
        self._first: int | None = None
        self._cut: int | None = None

    @property
    def cut(self) -> int | None:
        """Where the answer is to end; None while it does not repeat itself."""
        return self._cut

    @property
    def sure(self) -> int:
        """The length of the part that stays, whatever follows: up to the longest open run."""
        if self._cut is not None:
            return self._cut
        kept = self._first
        if kept is None:
            kept = len(self._words) - max(self._runs.values(), default=0)
        return self._words[kept - 1].end if kept else 0

    def add(self, text: str, *, in_call: bool = False) -> int | None:
        """Take the next piece of the answer.

        Args:
            text: The piece.
            in_call: Whether it may belong to a tool call written as text.

        Returns:
            `cut`: once it is set, it stays.
        """
        self._in_call = in_call
        self._text += text
        while self._cut is None and (found := _WORD.search(self._text, self._read)):
            self._read = found.end()
            self._take(found.group(), found.start())
        return self._cut

    def _take(self, text: str, start: int) -> None:
        if text.count("```") % 2:
            self._in_fence = not self._in_fence
        end = start + len(text)
        if not any(map(str.isalnum, text)) or _LIST_NUMBER.search(
            self._text[max(0, end - 24) : end]
        ):
            return
        self._words.append(_Word(text, start, end))
        if self._first is None:
            self._first = self._repeated_from(text)
            if self._first is not None:
                self._cut = self._end_from(self._first - 1)
        elif self._ends_sentence(len(self._words) - 1):
            self._cut = end
        elif end - self._words[self._first].start > MAX_SENTENCE_CHARS:
            self._cut = self._words[self._first - 1].end

    def _repeated_from(self, text: str) -> int | None:
        """Update the runs with the last word.

        Returns:
            The first word of the run that is a repetition, or None.
        """
        at = len(self._words) - 1
        earlier = self._places.setdefault(text, [])
        self._runs = {at - place: self._runs.get(at - place, 0) + 1 for place in earlier}
        earlier.append(at)
        for distance, run in self._runs.items():
            if self._is_repetition(distance, run):
                return at - run + 1
        return None

    def _is_repetition(self, distance: int, run: int) -> bool:
        repeated = self._words[len(self._words) - run :]
        chars = repeated[-1].end - repeated[0].start
        # Most words end here: they neither add up to a loop nor end a line of a list.
        if chars < LOOP_CHARS and not self._ends_sentence(len(self._words) - 1):
            return False
        is_code = self._in_fence or self._in_call
        is_prose = not is_code and any(any(map(str.isalpha, word.text)) for word in repeated)
        if is_prose and self._passages and self._is_passage(repeated, run):
            return True
        needed = LOOP_CHARS if is_prose else LOOP_CHARS * PATIENCE_IN_CODE
        return run >= 2 * distance and chars >= needed

    def _is_passage(self, repeated: Sequence[_Word], run: int) -> bool:
        start, end = repeated[0].start, repeated[-1].end
        if end - start >= PASSAGE_CHARS:
            return True
        if not self._text.startswith("\n", end):
            return False
        lines = self._text[start:end].split("\n")
        if "\n" not in self._text[self._words[len(self._words) - run - 1].end : start]:
            del lines[0]  # the run starts within this one
        return sum(any(map(str.isalnum, line)) for line in lines) >= PASSAGE_LINES

    def _end_from(self, first: int) -> int | None:
        """Find the first word, from one on, that ends a sentence or line; None if none does yet."""
        ends = (
            word.end
            for at, word in enumerate(self._words)
            if at >= first and self._ends_sentence(at)
        )
        return next(ends, None)

    def _ends_sentence(self, at: int) -> bool:
        word = self._words[at]
        # Only the next character counts, so that it does not matter which pieces come when.
        at_line_end = self._text.startswith("\n", word.end)
        return at_line_end or _SENTENCE_END.search(word.text) is not None
