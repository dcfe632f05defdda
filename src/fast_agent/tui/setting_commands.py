"""The commands `/config` and `/theme`: settings of the terminal, shown, tried and kept."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast, get_args

from fast_agent.commands.command import Command, CommandResult, Word
from fast_agent.commands.wording import listed, short
from fast_agent.config.tui import TUI, ThemeName, TuiSettings
from fast_agent.errors import ConfigError, RunError, os_reason
from fast_agent.schema.kinds import ListOf
from fast_agent.text.suggestion import closest, did_you_mean

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.commands.command import Arguments
    from fast_agent.commands.controller import ConversationController
    from fast_agent.text.json_value import JsonValue
    from fast_agent.tui.console import Console

_AT_START = frozenset({"bind", "keys", "plain"})
"""Settings that are read when the terminal is opened."""


def setting_commands(console: Console) -> tuple[Command, ...]:
    """Return the commands about settings.

    Args:
        console: The terminal.
    """
    own = _SettingCommands(console)
    return (
        Command(
            name="config",
            summary="list the settings of the terminal, or set one for good",
            act=own.config,
            words=(Word("NAME", "setting"), Word("VALUE", rest=True)),
            busy="now",
        ),
        Command(
            name="theme",
            summary="list the themes, or draw in the colours of one",
            act=own.theme,
            words=(Word("NAME", "theme"),),
            busy="now",
        ),
    )


class _SettingCommands:
    def __init__(self, console: Console) -> None:
        self._console = console

    async def config(
        self, arguments: Arguments, controller: ConversationController
    ) -> CommandResult:
        name, value = arguments.word(), arguments.word(1)
        if name is None:
            return CommandResult(
                text=listed(self._line(one.name, controller) for one in TUI.entries)
            )
        name = name.removeprefix("tui.")
        known = [one.name for one in TUI.entries]
        if name not in known:
            hint = did_you_mean(closest(name, known), "`/config` lists them")
            raise RunError(f"there is no setting `{short(name)}`", hint=hint)
        if value is None:
            return CommandResult(text=self._line(name, controller))
        return await self._set(name, value)

    async def theme(
        self, arguments: Arguments, controller: ConversationController
    ) -> CommandResult:
        name = arguments.word()
        names = get_args(ThemeName)
        if name is None:
            now = self._console.theme.name
            lines = [f"`{one}`" + (" (this one)" if one == now else "") for one in names]
            return CommandResult(text=f"{listed(lines)}\n\n{_SAMPLE}")
        if name not in names:
            hint = did_you_mean(closest(name, names), "`/theme` lists them")
            raise RunError(f"there is no theme `{short(name)}`", hint=hint)
        self._console.theme.become(cast("ThemeName", name))
        del controller
        kept = f"`/config theme {name}` keeps it"
        return CommandResult(text=f"drawn in the colours of `{name}` from now on; {kept}")

    def _line(self, name: str, controller: ConversationController) -> str:
        value = getattr(self._console.settings, name)
        doc = next(one.doc for one in TUI.entries if one.name == name)
        place = controller.program.settings.place_of("tui", name)
        origin = ""
        if value != getattr(TuiSettings(), name):
            origin = (
                f" ({place.path or place.variable})" if place is not None else " (changed here)"
            )
        return f"`{name}`: `{json.dumps(_plain(value), ensure_ascii=False)}`{origin}, {doc}"

    async def _set(self, name: str, text: str) -> CommandResult:
        from anyio.to_thread import run_sync

        from fast_agent.config.home import CONFIG_NAMES, home_directory

        home = home_directory(os.environ)
        file = next((one for part in CONFIG_NAMES if (one := home / part).is_file()), None)
        file = file or home / CONFIG_NAMES[0]
        value = _checked(name, text, file)
        await run_sync(_write, file, name, value)
        said = f"`{name}` is `{short(text)}` in `{file}`"
        if name in _AT_START:
            return CommandResult(text=f"{said}; it counts from the next start")
        settings = self._console.settings
        changed = tuple(value) if isinstance(value, list) else value
        self._console.settings = replace(settings, **cast("dict[str, Any]", {name: changed}))
        if name == "theme":
            self._console.theme.become(self._console.settings.theme)
        return CommandResult(text=said)


_SAMPLE = (
    "**bold** *emphasis* `code` [link](https://example.org)\n\n```python\nx = 'text'  # 1\n```"
)


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return list(cast("tuple[object, ...]", value))
    return value if isinstance(value, str | int | float | bool) else {}


def _checked(name: str, text: str, file: Path) -> JsonValue:
    """Read the value of a setting as a configuration file would be read.

    Raises:
        ConfigError: It does not fit.
    """
    if name == "bind":
        raise ConfigError("keys are bound in the file", hint="write `tui: {bind: {ctrl-s: steer}}`")
    from fast_agent.config.layer import EnvironmentLayer
    from fast_agent.config.reading import Reader

    kind = next(one.kind for one in TUI.entries if one.name == name)
    reader = Reader(EnvironmentLayer({}), file.parent, None)
    if isinstance(kind, ListOf) and not text.startswith("["):
        text = json.dumps(text.replace(",", " ").split())
    value = reader.text(kind, text, ("tui", name))
    if reader.problems:
        raise ConfigError(reader.problems[0].message, hint=reader.problems[0].hint)
    return cast("JsonValue", value)


def _write(file: Path, name: str, value: JsonValue) -> None:
    from fast_agent.config.edit import with_setting
    from fast_agent.text.atomic_file import write_atomic

    try:
        text = file.read_text("utf-8") if file.exists() else ""
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomic(file, with_setting(text, "tui", name, value).encode())
    except (OSError, UnicodeDecodeError) as error:
        reason = os_reason(error) if isinstance(error, OSError) else "it is not text in UTF-8"
        raise ConfigError(f"`{file}` cannot be written: {reason}") from error
