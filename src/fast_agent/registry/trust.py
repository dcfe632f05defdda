"""Trust: cards that were found, not named by a person, run code only once a person approved it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.errors import CardError
from fast_agent.text.source import signature_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from fast_agent.cards.card import Card
    from fast_agent.registry.approvals import CardApprovals, Standing
    from fast_agent.text.source import Signature


class CardTrust:
    """Which cards may run code.

    Args:
        approvals: What a person approved.
        workspace: The directory the program works in.

    Attributes:
        approvals: The same.
    """

    def __init__(self, approvals: CardApprovals, workspace: Path) -> None:
        self.approvals = approvals
        self._workspace = workspace
        self._found: set[str] = set()
        self._named: set[str] = set()
        self._seen: Signature | None = None
        self._sealed: dict[str, Mapping[str, str]] = {}
        self._folders: dict[str, frozenset[Path]] = {}

    @property
    def places(self) -> tuple[str, ...]:
        """What a change of may change which cards may run code."""
        return (str(self.approvals.path),) if self._found else ()

    def note(self, named: Iterable[str], found: Iterable[str]) -> None:
        """Note where cards come from.

        Args:
            named: Files and directories a person named, absolute and without links.
            found: Directories that were found.
        """
        self._named.update(named)
        self._found.update(found)

    def moved(self) -> bool:
        """Whether approvals changed since they were last looked at."""
        return bool(self._found) and signature_at(str(self.approvals.path)) != self._seen

    def permit(self, cards: Sequence[Card]) -> Iterator[Diagnostic]:
        """Check the cards of a whole set; what is approved now is sealed as it is.

        Args:
            cards: All cards.

        Yields:
            A diagnostic for each card that may not run what it brings.
        """
        if not self._found:
            return
        from fast_agent.diagnostics.trust_rules import UNTRUSTED_CODE
        from fast_agent.registry.card_code import code_of, function_folders

        self._seen = signature_at(str(self.approvals.path))
        for own in self._files(cards):
            try:
                code = code_of(own, self._workspace)
            except CardError as error:
                yield Diagnostic(UNTRUSTED_CODE, error.message, own[0].path, hint=error.hint)
                continue
            standing = self.approvals.standing(code)
            if standing == "approved":
                self._sealed[code.path] = code.files
                self._folders[code.path] = frozenset(
                    folder
                    for card in own
                    for folder in function_folders(card.config, self._workspace)
                )
            else:
                yield from (_refusal(card, standing) for card in own)

    def check(self, file: Path, text: str) -> None:
        """See that a file which is about to be run is still what was approved.

        Between the look at a card and the first use of its functions time passes.

        Args:
            file: A Python file.
            text: Its text.

        Raises:
            CardError: It belongs to a found card, and changed since.
        """
        if not self._sealed:
            return
        from fast_agent.diagnostics.tool_rules import function_error
        from fast_agent.diagnostics.trust_rules import CHANGED_CODE
        from fast_agent.registry.card_code import digest

        sealing = [
            files
            for path, files in self._sealed.items()
            if any(file.is_relative_to(folder) for folder in self._folders[path])
        ]
        if sealing and not any(files.get(str(file)) == digest(text) for files in sealing):
            raise function_error(
                CHANGED_CODE,
                f"`{file}` changed since it was approved, and is not run",
                hint="read it, then approve it as it is now with `fast-agent trust`",
            )

    def _files(self, cards: Iterable[Card]) -> Iterable[list[Card]]:
        """Group the found cards that bring code by their files."""
        files: dict[Path, list[Card]] = {}
        for card in cards:
            source = card.config.source
            if source is not None and card.config.brings_code and self._was_found(source):
                files.setdefault(source, []).append(card)
        return files.values()

    def _was_found(self, source: Path) -> bool:
        from fast_agent.registry.card_code import place_of

        places = {str(source.parent.resolve()), str(source.resolve()), place_of(source)}
        return bool(places & self._found) and not places & self._named


def _refusal(card: Card, standing: Standing) -> Diagnostic:
    from fast_agent.diagnostics.trust_rules import CHANGED_CODE, UNTRUSTED_CODE
    from fast_agent.registry.card_code import CODE_FIELDS

    field = next(name for name in CODE_FIELDS if getattr(card.config, name))
    span = card.span_of(field, key=True)
    name = card.config.name
    if standing == "changed":
        code = CHANGED_CODE
        message = f"`{name}`, or what it runs by `{field}`, changed since it was approved"
    else:
        code = UNTRUSTED_CODE
        message = f"`{name}` was found, not named, and brings code by `{field}`"
    return Diagnostic(
        code,
        message,
        card.path,
        span,
        hint=f"read it, then `fast-agent trust {card.path}`, or run with `--trust`",
        source_line=None if span is None else card.source_line(span.start.line),
    )
