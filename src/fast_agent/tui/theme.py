"""Theme: the styles of the terminal, in the sixteen colours that its user chose."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from fast_agent.tui.rows import PLAIN, Style

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_AGENT_COLORS: Final = ("36", "35", "32", "34", "33", "96", "95", "92")
_CODE_COLORS: Final = {
    "Comment": "2;3",
    "Keyword": "35",
    "Name.Builtin": "36",
    "Name.Class": "1;34",
    "Name.Decorator": "33",
    "Name.Exception": "31",
    "Name.Function": "34",
    "Name.Tag": "34",
    "Name.Attribute": "36",
    "Literal.String": "32",
    "Literal.Number": "36",
    "Operator.Word": "35",
    "Generic.Deleted": "31",
    "Generic.Inserted": "32",
    "Generic.Heading": "1",
    "Error": "31",
}


class Theme:
    """The styles.

    Args:
        color: Whether colours are drawn; bold, italic and dim are drawn without them too.
        styled: Whether anything is drawn but text.
        ascii_only: Whether signs are ASCII.
    """

    def __init__(
        self, *, color: bool = True, styled: bool = True, ascii_only: bool = False
    ) -> None:
        def style(codes: str, otherwise: str = "") -> Style:
            chosen = codes if color else otherwise
            return Style(chosen) if styled and chosen else PLAIN

        self.color = color and styled
        self.ascii_only = ascii_only
        self.dim = style("2", "2")
        self.strong = style("1", "1")
        self.emphasis = style("3", "3")
        self.struck = style("9", "9")
        self.heading = style("1;36", "1")
        self.code = style("36")
        self.link = style("4;34", "4")
        self.quote = style("2;3", "2")
        self.error = style("31", "1")
        self.warning = style("33", "1")
        self.good = style("32")
        self.danger = style("1;31", "7")
        self.chosen = style("7", "7")
        self.you = style("1;34", "1")
        self._agents = tuple(style(f"1;{codes}", "1") for codes in _AGENT_COLORS)
        self._token_styles: dict[object, Style] = {}

    @classmethod
    def of_environment(cls, environ: Mapping[str, str], *, encoding: str = "utf-8") -> Theme:
        """Choose by `NO_COLOR`, `FORCE_COLOR`, `CLICOLOR` and the encoding of the terminal."""
        ascii_only = encoding.lower().replace("-", "") != "utf8"
        force = environ.get("FORCE_COLOR", environ.get("CLICOLOR_FORCE", ""))
        if force and force != "0":
            return cls(ascii_only=ascii_only)
        without = bool(environ.get("NO_COLOR")) or environ.get("CLICOLOR") == "0" or force == "0"
        return cls(color=not without, ascii_only=ascii_only)

    def agent(self, name: str, names: Sequence[str]) -> Style:
        """Return the style of an agent, by its place among the agents of the set."""
        place = names.index(name) if name in names else len(names)
        return self._agents[place % len(self._agents)]

    def token(self, kind: object) -> Style:
        """Return the style of a token of source code, of a kind of pygments."""
        found = self._token_styles.get(kind)
        if found is None:
            name = str(kind).removeprefix("Token.")
            codes = ""
            while name and not codes:
                codes = _CODE_COLORS.get(name, "")
                name = name.rpartition(".")[0]
            found = Style(codes) if self.color and codes else PLAIN
            self._token_styles[kind] = found
        return found

    def sign(self, name: str) -> str:
        """Return a sign by its name."""
        return _SIGNS[name][self.ascii_only]


_SIGNS: Final[Mapping[str, tuple[str, str]]] = {
    "rule": ("─", "-"),
    "live": ("┆", "|"),
    "bar": ("│", "|"),
    "done": ("✓", "+"),
    "failed": ("✗", "x"),
    "branch": ("├─", "|-"),
    "last": ("└─", "`-"),
    "through": ("│ ", "| "),
    "step": ("→", "->"),
    "dot": ("·", "-"),
    "bullet": ("•", "*"),
    "queue": ("⏎", ">"),
    "more": ("…", "..."),
    "stop": ("⎋", "Esc"),
    "up": ("↑", "^"),
}

SPINNER: Final = ("◐", "◓", "◑", "◒")
ASCII_SPINNER: Final = ("-", "\\", "|", "/")


def wants_plain(environ: Mapping[str, str]) -> bool:
    """Whether the terminal cannot move its cursor."""
    return environ.get("TERM", "") in {"", "dumb"} and os.name != "nt"
