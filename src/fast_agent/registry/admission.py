"""Admission: what of the cards of found sets gets into the registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.cards.card_load import CardLoad
from fast_agent.cards.load import with_variables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fast_agent.cards.card_load import FileLoad
    from fast_agent.registry.card_root import CardRoot


class Admission:
    """Puts the values of variables into cards of found sets, once it is decided about them.

    Args:
        environ: The environment.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._admitted: dict[str, tuple[FileLoad, FileLoad]] = {}

    def admit(self, roots: Mapping[str, CardRoot]) -> dict[str, CardLoad]:
        """Return what each root gives the registry."""
        return {key: self._admit(root) for key, root in roots.items()}

    def _admit(self, root: CardRoot) -> CardLoad:
        if root.grant is None:
            return root.load
        return CardLoad.of(
            [self._file(file, multi_card=root.multi_card) for file in root.load.files]
        )

    def _file(self, file: FileLoad, *, multi_card: bool) -> FileLoad:
        if file.candidate is None:
            return file
        path = file.candidate.path
        known = self._admitted.get(path)
        if known is None or known[0] is not file:
            known = file, with_variables(file, self._environ, multi_card=multi_card)
            self._admitted[path] = known
        return known[1]
