"""Reading the cards of a program: each path once, with what its set may do where it was found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.errors import CardError
from fast_agent.registry.card_root import CardReader, read_roots
from fast_agent.trust.origin import end_of, own_place, remote_root, root_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from fast_agent.cards.card_load import Fetched
    from fast_agent.cards.load import ForeignPlaces
    from fast_agent.registry.card_root import CardRoot
    from fast_agent.trust.gate import Gate
    from fast_agent.trust.grant import Grant


class RootReader:
    """Reads paths with cards; what was read is kept until it is loaded.

    Args:
        cwd: The directory relative paths start from, absolute.
        environ: The variables for `${NAME}`.
        gate: Knows what is the person's own.
        foreign: Returns what reads directories of agents of other tools.
    """

    def __init__(
        self,
        cwd: Path,
        environ: Mapping[str, str],
        gate: Gate,
        foreign: Callable[[], ForeignPlaces],
    ) -> None:
        self._cwd = cwd
        self._environ = environ
        self._gate = gate
        self._reader = CardReader(cwd, environ, self._fetch, foreign)
        self._read: dict[str, CardRoot] = {}

    def key(self, path: str | Path) -> str:
        """Return what a path or address is known by: an absolute path, or the address itself."""
        return self._reader.key(path)

    def forget(self) -> None:
        """Read every path again from now on."""
        self._read = {}

    def read(
        self,
        paths: Iterable[str | Path],
        *,
        multi_card: bool,
        found: Iterable[str | Path],
        root: Path | None,
        optional: Iterable[str | Path],
    ) -> dict[str, CardRoot]:
        """Read paths, unless they were read since what is known was forgotten.

        Args:
            paths: Files, directories and addresses.
            multi_card: Whether a file may hold several cards.
            found: Those of the paths that were found, not named by a person.
            root: The root of the set they belong to; None for the project each is in.
            optional: Those of the paths that may be directories without a card.

        Returns:
            The roots, by what they are known by.
        """
        paths = tuple(paths)
        self._read |= read_roots(
            self._reader,
            [path for path in paths if self.key(path) not in self._read],
            multi_card=multi_card,
            optional=set(map(self.key, optional)),
            found=dict(self._grants(paths, found, root)),
        )
        return {self.key(path): self._read[self.key(path)] for path in paths}

    def _grants(
        self, paths: Iterable[str | Path], found: Iterable[str | Path], root: Path | None
    ) -> Iterator[tuple[str, Grant]]:
        """Yield the grants of paths that no person named, by what the paths are known by."""
        for path in found:
            from fast_agent.trust.grant import Grant

            place = own_place(self._cwd / path, self._environ)
            own = root_of(self._cwd / path)
            # What a set names outside of its root is a separate set.
            inside = root is not None and end_of(self._cwd / path).is_relative_to(root)
            grant = Grant(root if root is not None and inside else own, place=place)
            if not self._gate.owns(grant.root):
                yield self.key(path), grant
        for address in filter(_is_address, map(self.key, paths)):
            from fast_agent.trust.grant import Grant

            yield address, Grant(remote_root(address))

    def _fetch(self, address: str) -> Fetched:
        """Fetch a card from an address a person typed; redirects lead to its host only.

        What came is found, as everything with an address is: only to fetch it was the person's act.
        """
        from fast_agent.mcp.web_page import fetch_card

        if self._gate.options.without_found:
            raise CardError(
                "a card from a web address counts as found, and `--no-found` loads nothing found",
                hint="save the card and name the file",
            )
        if self._gate.options.passive and not self._gate.options.fetches:
            raise CardError(
                "cards from web addresses are not fetched only to be inspected",
                hint="save the card and name the file",
            )
        from fast_agent.trust.grant import origin_of

        place = origin_of(address)

        def check(url: str) -> None:
            if origin_of(url) != place:
                raise CardError(f"`{address}` leads to another host, which was not named")

        return fetch_card(address, check)


def _is_address(key: str) -> bool:
    return key.lower().startswith(("http://", "https://"))
