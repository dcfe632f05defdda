"""Prompt history: what was typed, by directory, kept in the home."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from prompt_toolkit.history import History

from fast_agent.text.wording import is_subsequence

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

FILE: Final = "prompts.jsonl"
_MAX_BYTES: Final = 4 << 20
_MAX_LENGTH: Final = 100_000


class PromptHistory(History):
    """What was typed.

    Args:
        path: The file; it need not exist. None keeps nothing.
        directory: The directory whose lines are offered.
    """

    def __init__(self, path: Path | None, directory: str) -> None:
        super().__init__()
        self._path = path
        self._directory = directory

    def load_history_strings(self) -> Iterable[str]:
        """Yield the lines of this directory, the newest first."""
        return reversed([text for directory, text in self._read() if directory == self._directory])

    def store_string(self, string: str) -> None:
        """Keep a line; where that cannot be, it is only not found again."""
        if self._path is None or len(string) > _MAX_LENGTH:
            return
        line = json.dumps({"cwd": self._directory, "text": string}) + "\n"
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            descriptor = os.open(self._path, flags, 0o600)
            try:
                os.write(descriptor, line.encode("utf-8", "replace"))
            finally:
                os.close(descriptor)

    def search(self, query: str, *, everywhere: bool = False, most: int = 8) -> list[str]:
        """Find lines that hold the letters of a query in their order, the newest first."""
        found: dict[str, None] = {}
        pool = self.get_strings()[::-1]
        if everywhere:
            pool = [text for _, text in reversed(self._read())]
        for text in pool:
            if text not in found and is_subsequence(query.lower(), text.lower()):
                found[text] = None
        ranked = sorted(found, key=lambda text: query.lower() not in text.lower())
        return ranked[:most]

    def _read(self) -> list[tuple[str, str]]:
        if self._path is None:
            return []
        try:
            with self._path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - _MAX_BYTES))
                data = file.read()
        except OSError:
            return []
        lines: list[tuple[str, str]] = []
        for line in data.splitlines():
            try:
                entry: object = json.loads(line)
            except ValueError:
                continue  # cut off by a crash, or by the bound
            match entry:
                case {"cwd": str() as directory, "text": str() as text}:
                    lines.append((directory, text))
                case _:
                    pass
        return lines
