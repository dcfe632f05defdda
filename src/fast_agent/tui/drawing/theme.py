"""Theme: the styles of the terminal, in the sixteen colours that its user chose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fast_agent.tui.drawing.rows import PLAIN, Style

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fast_agent.config.settings import ThemeName

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


PALETTES: Final[Mapping[str, Mapping[str, str]]] = {
    "dark": {
        "2": "9aa4b0", "31": "ff7b72", "32": "7ee787", "33": "e3b341", "34": "79c0ff",
        "35": "d2a8ff", "36": "56d4dd", "92": "aff5b4", "95": "ffb3f0", "96": "a5e8ff",
    },
    "light": {
        "2": "57606a", "31": "b3161b", "32": "116329", "33": "7d4e00", "34": "0550ae",
        "35": "7a3fc8", "36": "0a6270", "92": "1a6f30", "95": "a0217c", "96": "1b5f82",
    },
    # The colours of Okabe and Ito, lighter: no pair of red and green distinguishes anything.
    "colour-blind": {
        "2": "a6adb5", "31": "ff9e4a", "32": "6cc0ee", "33": "f0e442", "34": "7fc8f8",
        "35": "e39ac3", "36": "5fd9bd", "92": "9ad4f5", "95": "efb6d5", "96": "8ee3d0",
    },
}  # fmt: skip
"""Colours of themes in place of those of the terminal, by SGR parameter; `2` is dim text."""
BACKGROUNDS: Final[Mapping[str, str]] = {
    "dark": "1e1e1e", "light": "ffffff", "colour-blind": "1e1e1e",
}  # fmt: skip
"""The background each palette is made for."""


class Theme:
    """The styles.

    Args:
        color: Whether colours are drawn; bold, italic and dim are drawn without them too.
        styled: Whether anything is drawn but text.
        ascii_only: Whether signs are ASCII.
        name: The theme; `auto` and `ansi` draw in the sixteen colours of the terminal.
        depth: How many colours the terminal has: 16, 256 or 2^24.
        links: Whether the terminal is known to open links that are given to it.
        is_spoken: Whether a screen reader reads it aloud, as in plain mode: nothing is drawn again,
            and labels and sentences replace signs, rules and columns.
    """

    def __init__(
        self,
        *,
        color: bool = True,
        styled: bool = True,
        ascii_only: bool = False,
        name: ThemeName = "auto",
        depth: int = 16,
        links: bool = False,
        is_spoken: bool = False,
    ) -> None:
        self.name = name
        self.is_spoken = is_spoken
        self.links = links and styled
        self.depth = depth
        self._wants_color = color
        contrast = name == "high-contrast"
        color = color and not contrast
        palette = PALETTES.get(name, {}) if depth > 16 else {}

        def style(codes: str, otherwise: str = "") -> Style:
            chosen = _recolored(codes, palette, depth) if color else otherwise
            if contrast and chosen == "2":
                return PLAIN
            return Style(chosen) if styled and chosen else PLAIN

        self.color = color and styled
        self._styled = styled
        self._palette = palette
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
    def of_environment(
        cls, environ: Mapping[str, str], *, encoding: str = "utf-8", name: ThemeName = "auto"
    ) -> Theme:
        """Choose by `NO_COLOR`, `FORCE_COLOR`, `CLICOLOR` and the encoding of the terminal."""
        ascii_only = encoding.lower().replace("-", "") != "utf8"
        force = environ.get("FORCE_COLOR", environ.get("CLICOLOR_FORCE", ""))
        without = bool(environ.get("NO_COLOR")) or environ.get("CLICOLOR") == "0" or force == "0"
        color = bool(force and force != "0") or not without
        return cls(
            color=color,
            ascii_only=ascii_only,
            name=name,
            depth=color_depth(environ),
            links=link_source(environ) is not None,
        )

    def become(self, name: ThemeName) -> None:
        """Draw in the colours of another theme from now on."""
        other = Theme(
            color=self._wants_color,
            styled=self._styled,
            ascii_only=self.ascii_only,
            name=name,
            depth=self.depth,
            links=self.links,
            is_spoken=self.is_spoken,
        )
        self.__dict__.update(other.__dict__)

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
            codes = _recolored(codes, self._palette, self.depth)
            found = Style(codes) if self.color and codes else PLAIN
            self._token_styles[kind] = found
        return found

    def sign(self, name: str) -> str:
        """Return a sign by its name."""
        return _SIGNS[name][self.ascii_only]


_LINK_PROGRAMS: Final = frozenset({"iTerm.app", "WezTerm", "ghostty", "vscode", "Hyper", "rio"})
_LINK_TERMS: Final = frozenset({"xterm-kitty", "xterm-ghostty", "foot", "alacritty", "contour"})
_LINK_VERSIONS: Final = {"VTE_VERSION": 5000, "KONSOLE_VERSION": 201200}
IN_BETWEEN: Final = ("TMUX", "STY", "ZELLIJ")
"""What may drop links and images on their way to the terminal."""


def link_source(environ: Mapping[str, str]) -> str | None:
    """Return the variable that names a terminal known to take OSC 8 links; None without one.

    The terminals are those whose documentation says so, each named by the variable that it sets.
    """
    if any(environ.get(name) for name in IN_BETWEEN):
        return None
    if environ.get("TERM_PROGRAM") in _LINK_PROGRAMS:
        return "TERM_PROGRAM"
    if environ.get("TERM") in _LINK_TERMS:
        return "TERM"
    if environ.get("WT_SESSION"):
        return "WT_SESSION"
    for name, least in _LINK_VERSIONS.items():
        version = environ.get(name, "")
        if version.isdecimal() and int(version) >= least:
            return name
    return None


def color_depth(environ: Mapping[str, str]) -> int:
    """Return how many colours the terminal says it has."""
    if environ.get("COLORTERM", "") in {"truecolor", "24bit"}:
        return 1 << 24
    return 256 if "256" in environ.get("TERM", "") else 16


def _recolored(codes: str, palette: Mapping[str, str], depth: int) -> str:
    """Replace the colours of the terminal by those of a palette."""
    if not palette or not codes:
        return codes
    return ";".join(
        _foreground(palette[code], depth) if code in palette else code for code in codes.split(";")
    )


def _foreground(rgb: str, depth: int) -> str:
    red, green, blue = channels(rgb)
    if depth > 256:
        return f"38;2;{red};{green};{blue}"
    return f"38;5;{cube_color(rgb)}"


def channels(rgb: str) -> tuple[int, int, int]:
    """Return red, green and blue of `rrggbb`."""
    return int(rgb[:2], 16), int(rgb[2:4], 16), int(rgb[4:], 16)


CUBE_LEVELS: Final = (0, 95, 135, 175, 215, 255)


def cube_color(rgb: str) -> int:
    """Return the number of the nearest of the 216 colours that terminals with 256 share."""
    number = 16
    for place, level in zip((36, 6, 1), channels(rgb), strict=True):
        nearest = min(range(6), key=lambda one: abs(CUBE_LEVELS[one] - level))
        number += place * nearest
    return number


_SIGNS: Final[Mapping[str, tuple[str, str]]] = {
    "rule": ("─", "-"),
    "live": ("┆", "|"),
    "bar": ("│", "|"),
    "done": ("✓", "+"),
    "failed": ("✗", "x"),
    "open": ("○", "o"),
    "working": ("◐", "*"),
    "branch": ("├─", "|-"),
    "last": ("└─", "`-"),
    "through": ("│ ", "| "),
    "step": ("→", "->"),
    "fork": ("⑂", "fork:"),
    "dot": ("·", "-"),
    "bullet": ("•", "*"),
    "queue": ("⏎", ">"),
    "more": ("…", "..."),
    "stop": ("⎋", "Esc"),
    "up": ("↑", "^"),
}

SPINNER: Final = ("◐", "◓", "◑", "◒")
ASCII_SPINNER: Final = ("-", "\\", "|", "/")
