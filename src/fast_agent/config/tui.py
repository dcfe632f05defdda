"""The section `tui`: how the terminal looks and which keys it takes."""

from __future__ import annotations

from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from fast_agent.schema.kinds import Entry, Flag, ListOf, MapOf, OneOf, Record, Text, Whole
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

ThemeName: TypeAlias = Literal["auto", "ansi", "dark", "light", "high-contrast", "colour-blind"]
Wrap: TypeAlias = Literal["words", "terminal"]
Thinking: TypeAlias = Literal["line", "show", "hide"]
EditingKeys: TypeAlias = Literal["emacs", "vi"]
ImageDrawing: TypeAlias = Literal["auto", "kitty", "iterm", "sixel", "off"]
Notify: TypeAlias = Literal["auto", "bell", "off"]
BusyEnter: TypeAlias = Literal["queue", "steer"]
StatusField: TypeAlias = Literal["agent", "model", "context", "cost", "mode", "session", "hint"]


def _none() -> Mapping[str, str]:
    return MappingProxyType({})


@frozen(kw_only=True)
class TuiSettings:
    """The section `tui`.

    Args:
        theme: The colours; `auto` takes the sixteen of the terminal.
        width: Most columns of text.
        wrap: Who wraps prose: this program at words, or the terminal.
        markdown: Whether answers are drawn as Markdown; else as they were written.
        images: How images of answers are drawn; `auto` goes by what the terminal is known for.
        motion: Whether the spinner moves.
        thinking: Whether reasoning is one line, shown whole, or hidden.
        plain: Whether lines are read and written, and nothing is drawn.
        keys: Which keys edit the text.
        busy_enter: What Enter does while a turn works.
        bind: Actions by key, over the table of keys.
        status: What the status row shows, in its order.
        status_command: A command line that draws the status row; empty for none.
        notify: How a terminal without focus is notified of the end of a turn or a question.
        notify_seconds: How long a turn must have worked for that.
    """

    theme: ThemeName = "auto"
    width: int = 100
    wrap: Wrap = "words"
    markdown: bool = True
    images: ImageDrawing = "auto"
    motion: bool = True
    thinking: Thinking = "line"
    plain: bool = False
    keys: EditingKeys = "emacs"
    busy_enter: BusyEnter = "queue"
    bind: Mapping[str, str] = field(default_factory=_none, hash=False)
    status: tuple[StatusField, ...] = ("agent", "model", "context", "cost", "mode", "hint")
    status_command: str = ""
    notify: Notify = "auto"
    notify_seconds: int = 20


NO_TUI: Final = TuiSettings()
"""The section of someone who has none."""

TUI: Final = Record(
    entries=(
        Entry("theme", OneOf(get_args(ThemeName)), "the colours", effects=()),
        Entry("width", Whole(minimum=20), "most columns of text", effects=()),
        Entry("wrap", OneOf(get_args(Wrap)), "who wraps prose", effects=()),
        Entry("markdown", Flag(), "whether answers are drawn as Markdown", effects=()),
        Entry(
            "images", OneOf(get_args(ImageDrawing)), "how images of answers are drawn", effects=()
        ),
        Entry("motion", Flag(), "whether the spinner moves", effects=()),
        Entry("thinking", OneOf(get_args(Thinking)), "how reasoning is shown", effects=()),
        Entry("plain", Flag(), "whether lines are written and nothing is drawn", effects=()),
        Entry("keys", OneOf(get_args(EditingKeys)), "which keys edit the text", effects=()),
        Entry(
            "busy_enter",
            OneOf(get_args(BusyEnter)),
            "what Enter does while a turn works",
            effects=(),
        ),
        Entry("bind", MapOf(Text()), "actions by key, such as `ctrl-s: steer`", effects=()),
        Entry(
            "status",
            ListOf(OneOf(get_args(StatusField))),
            "what the status row shows, in its order",
            effects=(),
        ),
        Entry(
            "status_command",
            Text(blank=True),
            "a command line that draws the status row; counts in your own configuration only",
            effects=(),  # a found file that has it is refused
        ),
        Entry(
            "notify",
            OneOf(get_args(Notify)),
            "how a terminal without focus is notified of the end of a turn or a question",
            effects=(),
        ),
        Entry(
            "notify_seconds",
            Whole(minimum=0),
            "how many seconds a turn must have worked for a notification",
            effects=(),
        ),
    ),
    build=TuiSettings,
)
"""How the terminal looks and which keys it takes."""
