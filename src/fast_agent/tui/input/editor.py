"""Editor: the text being typed, its keys, its menu of completions and its history.

The library provides keys, the buffer, completion and history; `Screen` draws the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import (
    CompleteEvent,
    Completer,
    Completion,
    get_common_complete_suffix,
)
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, vi_navigation_mode
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import BufferControl, Layout, Window
from prompt_toolkit.output import DummyOutput

from fast_agent.text.visible import glyphs
from fast_agent.tui.drawing.rows import clip, shown
from fast_agent.tui.input.attachments import pasted_files, path_being_named
from fast_agent.tui.input.keys import KEYS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Sequence

    from prompt_toolkit.data_structures import Size
    from prompt_toolkit.document import Document
    from prompt_toolkit.input import Input
    from prompt_toolkit.key_binding import KeyPressEvent

    from fast_agent.tui.drawing.theme import Theme
    from fast_agent.tui.input.keys import Key
    from fast_agent.tui.input.prompt_history import PromptHistory

MAX_ROWS: Final = 10
_MENU_ROWS: Final = 8
_CHIP_LINES: Final = 20
_CHIP_LENGTH: Final = 2_000
_ESCAPE_SECONDS: Final = 0.05
_PROMPT: Final = "> "
_SEARCH_KEYS: Final = ("backspace", "c-r", "down", "up", "enter", "escape", "f24", "c-c", "c-g")


class Actions(Protocol):
    """What keys do outside of the text."""

    def act(self, action: str) -> bool:
        """Do what a key of the table does; returns False where the editor is to do it."""
        ...

    def typed(self, key: str) -> bool:
        """Take a key before the editor; returns whether it was taken."""
        ...

    def completions(self, line: str) -> Iterable[tuple[str, int, str]]:
        """Yield how a line may continue: text, the place where it starts, what it is."""
        ...

    async def server_completions(self, line: str) -> Iterable[tuple[str, int, str]]:
        """Return how a line may continue as a server says, within a short time."""
        ...

    def redraw(self) -> None:
        """Draw the live area."""
        ...

    def terminal_size(self) -> tuple[int, int]:
        """Return columns and rows."""
        ...


@dataclass(slots=True)
class _Search:
    query: str = ""
    everywhere: bool = False
    chosen: int = 0


class Editor:
    """The text being typed.

    Args:
        actions: What keys do outside of the text.
        history: What was typed before.
        theme: The styles.
        keyboard: Where keys come from.
        vi: Whether vi keys edit the text.
        keys: The terminal's own keys.
    """

    def __init__(
        self,
        actions: Actions,
        history: PromptHistory,
        theme: Theme,
        keyboard: Input,
        *,
        vi: bool = False,
        keys: Sequence[Key] = KEYS,
    ) -> None:
        self._keys = keys
        self._actions = actions
        self._history = history
        self._theme = theme
        self._pastes: dict[str, str] = {}
        self._search: _Search | None = None
        self._ways = _Ways(actions)
        self.buffer = Buffer(
            multiline=True,
            history=history,
            completer=self._ways,
            complete_while_typing=Condition(self._completes),
        )
        self.application: Application[None] = Application(
            layout=Layout(Window(BufferControl(self.buffer))),
            key_bindings=self._bindings(),
            output=_NoOutput(actions.terminal_size),
            input=keyboard,
            editing_mode=EditingMode.VI if vi else EditingMode.EMACS,
            min_redraw_interval=0.5,
            after_render=self._redraw,
        )
        self.application.ttimeoutlen = _ESCAPE_SECONDS
        self.application.key_processor.after_key_press += self._redraw
        self.buffer.on_completions_changed += self._redraw

    @property
    def text(self) -> str:
        """What is typed, with pastes whole."""
        text = self.buffer.text
        for chip, paste in self._pastes.items():
            text = text.replace(chip, paste)
        return text

    @property
    def is_empty(self) -> bool:
        """Whether nothing is typed."""
        return not self.buffer.text

    @property
    def draft(self) -> str:
        """What is typed, as it is seen."""
        return self.buffer.text

    def read_keys(self) -> None:
        """Take the keys that were typed before the editor was there."""
        keys = self.application.key_processor
        keys.feed_multiple(self.application.input.read_keys())
        keys.process_keys()

    def put(self, text: str) -> None:
        """Replace the typed text."""
        self.buffer.text = text
        self.buffer.cursor_position = len(text)

    def take(self) -> str:
        """Return the typed text, add it to the history, and clear the editor."""
        text = self.text
        if self.buffer.text.strip() and not self._pastes:
            self.buffer.append_to_history()
        self.clear()
        return text

    def remember(self, text: str) -> None:
        """Add text to the history, without changing the typed text."""
        self._history.append_string(text)

    def typed_before(self, text: str, *, but: str) -> str | None:
        """Return the last line typed in this directory that has the letters of a text, or None.

        Args:
            text: The letters, in their order.
            but: How lines start that do not count.
        """
        found = self._history.search(text, most=100)
        return next((line for line in found if not line.startswith(but)), None)

    def clear(self) -> None:
        """Clear the editor."""
        self.buffer.reset()
        self._pastes.clear()
        if self.application.is_running:
            self.buffer.load_history_if_not_yet_loaded()

    def paste(self, text: str) -> None:
        """Insert pasted text; a long one as a chip that represents it, files as attachments."""
        files = [] if self.buffer.text[:1] in {"/", "!", "#"} else pasted_files(text)
        if files:
            self.buffer.insert_text("".join(f'@"{path}" ' for path in files))
            return
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.count("\n") + 1
        if lines <= _CHIP_LINES and len(text) <= _CHIP_LENGTH:
            self.buffer.insert_text(text)
            return
        size = f"{lines} lines" if lines > 1 else f"{len(text)} characters"
        chip = f"[paste {len(self._pastes) + 1}: {size}]"
        self._pastes[chip] = text
        self.buffer.insert_text(chip)

    def expand(self) -> bool:
        """Show pastes whole; returns whether there were any."""
        if not self._pastes:
            return False
        text = self.text
        self._pastes.clear()
        self.put(text)
        return True

    def close_menu(self) -> bool:
        """Close a menu or search; returns whether one was open."""
        if self._search is not None:
            self._search = None
            return True
        if self.buffer.complete_state is not None:
            self.buffer.cancel_completion()
            return True
        return False

    def rows(self, columns: int, most: int) -> tuple[list[str], tuple[int, int], list[str]]:
        """Draw the text.

        Args:
            columns: The width.
            most: The most rows of it.

        Returns:
            Its rows, row and column of the caret, and the rows of the menu below it.
        """
        if self._search is not None:
            return self._search_rows(columns, self._search)
        room = max(1, columns - len(_PROMPT))
        document = self.buffer.document
        rows: list[str] = []
        caret = (0, 0)
        for number, line in enumerate(document.lines):
            wanted = document.cursor_position_col
            is_here = number == document.cursor_position_row
            wrapped, place = _wrap_line(line, room, wanted if is_here else None)
            if place is not None:
                caret = (len(rows) + place[0], place[1] + len(_PROMPT))
            rows += wrapped
        first = max(0, min(caret[0] - most // 2, len(rows) - most))
        seen = rows[first : first + most]
        marked = [
            (self._theme.you(_PROMPT) if first + index == 0 else " " * len(_PROMPT)) + row
            for index, row in enumerate(seen)
        ]
        return marked, (caret[0] - first, caret[1]), self._menu(columns)

    def _menu(self, columns: int) -> list[str]:
        state = self.buffer.complete_state
        if state is None or not state.completions:
            return []
        chosen = state.complete_index
        first = max(0, min((chosen or 0) - _MENU_ROWS // 2, len(state.completions) - _MENU_ROWS))
        completions = state.completions[first : first + _MENU_ROWS]
        size = min(max(len(one.display_text) for one in completions), max(8, columns // 2))
        rows: list[str] = []
        for index, one in enumerate(completions, first):
            name = clip(shown(one.display_text), size).ljust(size)
            name = self._theme.chosen(name) if index == chosen else name
            about = self._theme.dim(f"  {shown(one.display_meta_text)}")
            rows.append(clip(f"  {name}{about}", columns))
        more = len(state.completions) - first - len(completions)
        if more > 0:
            rows.append(self._theme.dim(f"  {self._theme.sign('more')} {more} more"))
        return rows

    def _search_rows(
        self, columns: int, search: _Search
    ) -> tuple[list[str], tuple[int, int], list[str]]:
        where = "everywhere" if search.everywhere else "here"
        label = f"search {where}: "
        found = self._history.search(search.query, everywhere=search.everywhere)
        search.chosen = min(search.chosen, max(0, len(found) - 1))
        rows = [
            clip(
                ("> " if index == search.chosen else "  ") + shown(" ".join(text.split())), columns
            )
            for index, text in enumerate(found)
        ]
        typed = shown(search.query)
        return (
            [self._theme.you(label) + typed],
            (0, len(label) + len(typed)),
            rows or [self._theme.dim("  nothing found")],
        )

    def _redraw(self, _: object) -> None:
        self._actions.redraw()

    def _completes(self) -> bool:
        text = self.buffer.text
        return text[:1] in {"/", "@", "#"} or "@" in self.buffer.document.current_line_before_cursor

    @property
    def is_naming_file(self) -> bool:
        """Whether the text before the caret ends in what may name a file."""
        return path_being_named(self.buffer.document.text_before_cursor) is not None

    def _bindings(self) -> KeyBindings:
        bindings = KeyBindings()
        searching = Condition(lambda: self._search is not None)

        for one in self._keys:
            for keys in one.keys:
                eager = keys in {("enter",), ("c-c",), ("c-d",), ("escape", "enter")}
                bindings.add(*keys, filter=~searching, eager=eager)(self._handler(one.action))

        @bindings.add(Keys.BracketedPaste, eager=True)
        def _(event: KeyPressEvent) -> None:
            self._search = None
            self.paste(event.data)

        @bindings.add(Keys.Any, filter=~searching & ~vi_navigation_mode)
        def _(event: KeyPressEvent) -> None:
            if self._actions.typed(event.data):
                return
            if event.data == "?" and self.is_empty:
                self._actions.act("help")
                return
            if event.data.isprintable() or event.data == "\t":
                self.buffer.insert_text(event.data * event.arg)

        @bindings.add("escape", "enter", filter=searching, eager=True)
        def _(event: KeyPressEvent) -> None:
            # As two keys, Escape would leave the search, and Enter send what was typed before it.
            del event
            self._search = None

        for key in (*_SEARCH_KEYS, ""):
            eager = key != "escape"  # else Alt-Enter would never be seen as one key
            bindings.add(key or Keys.Any, filter=searching, eager=eager)(self._search_handler(key))
        return bindings

    def _search_handler(self, key: str) -> Callable[[KeyPressEvent], None]:
        return lambda event: self._search_key(key, event.data)

    def _handler(self, action: str) -> Callable[[KeyPressEvent], None]:
        def handle(event: KeyPressEvent) -> None:
            if not self._actions.act(action):
                self._edit(action, event)

        return handle

    def _edit(self, action: str, event: KeyPressEvent) -> None:
        """Do what a key does in the text."""
        buffer = self.buffer
        match action:
            case "newline":
                buffer.insert_text("\n")
            case "complete":
                self._complete()
            case "mode":
                if buffer.complete_state is not None:
                    buffer.complete_previous()
            case "up":
                buffer.auto_up(count=event.arg)
            case "down":
                buffer.auto_down(count=event.arg)
            case "end":
                buffer.delete(count=event.arg)
            case "search":
                self._search = _Search()
            case _:
                pass

    def _complete(self) -> None:
        buffer = self.buffer
        state = buffer.complete_state
        if state is not None and state.completions:
            buffer.complete_next()
            if len(state.completions) == 1:  # nothing is left to choose: Enter sends the text
                buffer.complete_state = None
            return
        # Where the search that typing began is still under way, another one would not begin.
        event = CompleteEvent(completion_requested=True)
        found = list(self._ways.get_completions(buffer.document, event))
        if len(found) == 1:
            buffer.apply_completion(found[0])
            return
        if found and (common := get_common_complete_suffix(buffer.document, found)):
            buffer.insert_text(common)
        buffer.start_completion(insert_common_part=True)

    def leave_insertion(self) -> bool:
        """Leave the insert mode of vi; returns whether it was left."""
        state = self.application.vi_state
        vi = self.application.editing_mode is EditingMode.VI
        if not vi or state.input_mode is InputMode.NAVIGATION:
            return False
        state.input_mode = InputMode.NAVIGATION
        return True

    def send_key(self) -> bool:
        """Do what Enter does in the text; returns False where the text is to be sent."""
        buffer = self.buffer
        state = buffer.complete_state
        if state is not None and state.current_completion is not None:
            buffer.complete_state = None
            return True
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
            return True
        return False

    def _search_key(self, key: str, data: str) -> None:
        """Take a key while history is searched."""
        search = self._search
        if search is None:
            return
        match key:
            case "backspace":
                search.query = search.query[:-1]
            case "c-r":
                search.chosen += search.everywhere
                search.everywhere = True
            case "down":
                search.chosen += 1
            case "up":
                search.chosen = max(0, search.chosen - 1)
            case "enter":
                found = self._history.search(search.query, everywhere=search.everywhere)
                self._search = None
                if found:
                    self.put(found[min(search.chosen, len(found) - 1)])
            case "":
                search.query += data if data.isprintable() else ""
            case _:
                self._search = None


class _Ways(Completer):
    """Completion of the line before the cursor."""

    def __init__(self, actions: Actions) -> None:
        self._actions = actions

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """Yield how the line may continue."""
        del complete_event
        line = document.text_before_cursor
        return _as_completions(self._actions.completions(line), line)

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion]:
        """Yield how the line may continue, then what a server knows."""
        for one in self.get_completions(document, complete_event):
            yield one
        line = document.text_before_cursor
        for one in _as_completions(await self._actions.server_completions(line), line):
            yield one


def _as_completions(found: Iterable[tuple[str, int, str]], line: str) -> Iterable[Completion]:
    for text, start, about in found:
        if text != line[start:]:
            yield Completion(text, start_position=start - len(line), display_meta=about)


class _NoOutput(DummyOutput):
    """An output that draws nothing, and knows the size of the terminal."""

    def __init__(self, size: Callable[[], tuple[int, int]]) -> None:
        super().__init__()
        self._size = size

    def get_size(self) -> Size:
        from prompt_toolkit.data_structures import Size

        columns, rows = self._size()
        return Size(rows=rows, columns=columns)


def _wrap_line(
    line: str, room: int, wanted: int | None
) -> tuple[list[str], tuple[int, int] | None]:
    """Lay a line of the text out in rows, and find the caret in them."""
    rows: list[list[str]] = [[]]
    used = 0
    place: tuple[int, int] | None = None
    for index, (text, size) in enumerate(glyphs(line)):
        if used + size > room and used:
            rows.append([])
            used = 0
        if index == wanted:
            place = (len(rows) - 1, used)
        rows[-1].append(text)
        used += size
    if wanted is not None and place is None:
        if used >= room:
            rows.append([])
            used = 0
        place = (len(rows) - 1, used)
    return ["".join(row) for row in rows], place
