"""Cards: an agent's configuration together with the text it came from, and what a load gave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, NamedTuple, Self

from fast_agent.errors import CardError
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.cards.card_files import Candidate
    from fast_agent.cards.document import CardDocument
    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.text.json_value import JsonObject
    from fast_agent.text.source import Signature
    from fast_agent.text.span import Span


@frozen
class Card:
    """One agent of a load-set.

    Args:
        config: What it compiles to.
        path: The file or address, as the user named it; empty for an agent made in Python.
        document: The text it came from; None for an agent made in Python.
        sound: Whether it is free of errors. An unsound card keeps what is right in it, so that
            the checks across cards can still be made; it is never run.
    """

    config: AgentConfig
    path: str = ""
    document: CardDocument | None = field(default=None, repr=False, compare=False)
    sound: bool = True

    def with_config(self, config: AgentConfig) -> Card:
        """Return a copy that compiles to something else."""
        return Card(config, self.path, self.document, self.sound)

    @property
    def written(self) -> JsonObject | None:
        """The values of its fields as they are written, before `${VARIABLES}` are replaced."""
        if self.document is None:
            return None
        value = self.document.yaml.value
        # `dict` first: to ask whether a value is a `Mapping` takes ten times as long.
        return value if isinstance(value, dict | Mapping) else {}

    def locate(self, message: str) -> str:
        """Return a message about it with its name, if no file says where it is."""
        return message if self.path else f"agent `{self.config.name}`: {message}"

    def span_of(self, name: str, *keys: str | int, key: bool = False) -> Span | None:
        """Find where a field, or something in it, is written.

        Args:
            name: The field.
            *keys: Keys and indexes in its value; a part that does not exist is left off.
            key: Whether to return the place of the last key instead of its value.

        Returns:
            Its span in the file; None if the card does not set the field, or was made of an agent
            of another tool.
        """
        if self.document is None or self.document.source.is_made:
            return None
        return self.document.span_of((name, *keys), key=key)

    def placed(self, problem: Diagnostic, span: Span | None) -> Diagnostic:
        """Place a problem in the file of the card.

        Args:
            problem: The problem.
            span: Where it is; None for the whole file.
        """
        line = None if span is None else self.source_line(span.start.line)
        return replace(problem, path=self.path, span=span, source_line=line)

    def source_line(self, number: int) -> str | None:
        """Return a line of its file, numbered from 1; None for an agent made in Python."""
        return None if self.document is None else self.document.source.line(number)


@frozen
class SkippedFile:
    """A file of a directory that was skipped.

    Args:
        path: The file, as the user named it.
        reason: Why, as its diagnostic says it.
    """

    path: str
    reason: str


class FetchedText(NamedTuple):
    """The text behind an address.

    Args:
        address: Where it came from in the end, after redirects.
        text: The text.
    """

    address: str
    text: str


@frozen
class FileLoad:
    """What one file gave.

    Args:
        candidate: The file; None for an address, and for a path that leads to no file.
        signature: Its signature before it was read; None if it could not be checked.
        cards: Its cards, unsound ones too.
        diagnostics: Every problem of it.
        skipped: Why it was skipped; None if it was not.
        unread: The names its cards would most likely have, where it could not be read.
    """

    candidate: Candidate | None = None
    signature: Signature | None = None
    cards: tuple[Card, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    skipped: SkippedFile | None = None
    unread: tuple[str, ...] = ()

    def with_cards(self, cards: Iterable[Card]) -> FileLoad:
        """Return a copy with other cards."""
        new = tuple(cards)
        return FileLoad(
            self.candidate, self.signature, new, self.diagnostics, self.skipped, self.unread
        )

    @property
    def only_cards(self) -> bool:
        """Whether it contained only cards, and there is nothing else to report."""
        return bool(self.cards) and not (self.diagnostics or self.skipped or self.unread)


@frozen
class CardLoad:
    """What paths gave.

    Args:
        cards: The cards in load order, unsound ones too.
        diagnostics: Every problem of every file, in load order.
        skipped: The files skipped.
        unread: The names that cards in unreadable files would most likely have; references to
            them are not reported as unknown.
        files: The same, file by file.
    """

    cards: tuple[Card, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    skipped: tuple[SkippedFile, ...] = ()
    unread: tuple[str, ...] = ()
    files: tuple[FileLoad, ...] = ()

    def unread_errors(self) -> list[Diagnostic]:
        """Return the errors of files that gave no card."""
        unread = (file for file in self.files if not file.cards)
        return [one for file in unread for one in file.diagnostics if one.severity == "error"]

    @classmethod
    def of(cls, files: Iterable[FileLoad]) -> Self:
        """Join what files gave, in load order."""
        files = tuple(files)
        return cls(
            tuple([card for file in files for card in file.cards]),
            tuple([problem for file in files for problem in file.diagnostics]),
            tuple([file.skipped for file in files if file.skipped is not None]),
            tuple([name for file in files for name in file.unread]),
            files,
        )

    def after(self, changes: Mapping[int, FileLoad]) -> CardLoad:
        """Return the load after some files changed; `of` itself, and fast if little changed.

        Args:
            changes: What files contain now, by their index in `files`.
        """
        cards, files = list(self.cards), list(self.files)
        quick = True
        for at, new in changes.items():
            old, files[at] = files[at], new
            if old.only_cards and new.only_cards and len(old.cards) == len(new.cards):
                first = _place_near(at, old.cards[0], cards)
                cards[first : first + len(new.cards)] = new.cards
            else:
                quick = False
        if not quick:
            return CardLoad.of(files)
        return CardLoad(tuple(cards), self.diagnostics, self.skipped, self.unread, tuple(files))

    @property
    def failed(self) -> bool:
        """Whether there is an error."""
        return any(found.severity == "error" for found in self.diagnostics)

    def raise_errors(self) -> None:
        """Raise when there is an error.

        Raises:
            CardError: With all diagnostics.
        """
        errors = [found for found in self.diagnostics if found.severity == "error"]
        if errors:
            count = f"{len(errors)} errors in cards" if len(errors) > 1 else errors[0].message
            raise CardError(count, hint=errors[0].hint, diagnostics=self.diagnostics)


def _place_near(at: int, card: Card, cards: Sequence[Card]) -> int:
    """Find a card that is among others, from the place it has where each file holds one card."""
    far = max(at, len(cards))
    places = (place for step in range(far + 1) for place in (at - step, at + step))
    return next(one for one in places if 0 <= one < len(cards) and cards[one] is card)
