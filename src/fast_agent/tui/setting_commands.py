"""The commands `/config`, `/theme` and `/auth`: what a user sets from the terminal, for good."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast, get_args

from fast_agent.commands.command import Command, CommandResult, Word, listed, short
from fast_agent.config.home import CONFIG_NAMES, SECRETS_NAMES, home_directory
from fast_agent.config.load import find_files
from fast_agent.config.providers import PROVIDERS
from fast_agent.config.settings import TUI, ThemeName, TuiSettings
from fast_agent.errors import ConfigError, RunError, ToolError, os_reason
from fast_agent.schema.kinds import ListOf
from fast_agent.text.wording import closest, did_you_mean
from fast_agent.tui.drawing.rows import shown
from fast_agent.tui.questions import Question

if TYPE_CHECKING:
    from collections.abc import Sequence
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
            summary="list the settings of the terminal, or save one",
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
        Command(
            name="auth",
            summary="keep the key of a provider of models, and start again with it",
            act=own.auth,
            words=(Word("PROVIDER", "provider", required=True),),
            busy="no",
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

    async def auth(self, arguments: Arguments, controller: ConversationController) -> CommandResult:
        """Ask for a key, which is neither shown nor kept in the history, and keep it."""
        from anyio.to_thread import run_sync

        name = arguments.words[0]
        keyed = {one.name: one for one in PROVIDERS.values() if one.key_variables}
        if name not in keyed:
            hint = did_you_mean(closest(name, keyed), f"there are {', '.join(keyed)}")
            raise RunError(f"there is no provider `{short(name)}` with a key", hint=hint)
        provider = keyed[name]
        variable = provider.key_variables[0]
        if self._console.theme.is_spoken:
            hint = f"set {variable} and start again"
            raise RunError("what is typed cannot be hidden in plain mode", hint=hint)
        file = _file_of_home(SECRETS_NAMES)
        lines = [f"It is kept in {shown(str(file))}, which only you can read."]
        question = Question(f"The key for {provider.label}?", lines, parse=_key, secret=True)
        key = await self._console.questions.ask(question)
        if not isinstance(key, str):
            return CommandResult(text="no key was kept")
        await run_sync(partial(_write, file, (name, "api_key"), key, private=True))
        found = find_files(controller.workspace, file.parent).secrets
        said = f"the key for {provider.label} is kept in `{file}`"
        if os.environ.get(variable):
            return CommandResult(text=f"{said}; `{variable}` is set, and takes precedence")
        if found is not None and found != file:
            return CommandResult(text=f"{said}; `{found}` is closer, and takes precedence")
        self._console.restart()
        return CommandResult(text=f"{said}; starting again with it")

    def _line(self, name: str, controller: ConversationController) -> str:
        value = getattr(self._console.settings, name)
        doc = next(one.doc for one in TUI.entries if one.name == name)
        place = controller.program.settings.place_of("tui", name)
        origin = ""
        if value != getattr(TuiSettings(), name):
            origin = (
                f" ({place.path or place.variable})" if place is not None else " (changed here)"
            )
        return f"`{name}`: `{json.dumps(_json_value(value), ensure_ascii=False)}`{origin}, {doc}"

    async def _set(self, name: str, text: str) -> CommandResult:
        from anyio.to_thread import run_sync

        file = _file_of_home(CONFIG_NAMES)
        value = _checked(name, text, file)
        await run_sync(_write, file, ("tui", name), value)
        said = f"`{name}` is `{short(text)}` in `{file}`"
        if name in _AT_START:
            return CommandResult(text=f"{said}; it takes effect at the next start")
        settings = self._console.settings
        changed = tuple(value) if isinstance(value, list) else value
        self._console.settings = replace(settings, **cast("dict[str, Any]", {name: changed}))
        if name == "theme":
            self._console.theme.become(self._console.settings.theme)
        return CommandResult(text=said)


_SAMPLE = (
    "**bold** *emphasis* `code` [link](https://example.org)\n\n```python\nx = 'text'  # 1\n```"
)


def _json_value(value: object) -> object:
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
    from fast_agent.config.layer import EnvironmentLayer, LayerReader

    kind = next(one.kind for one in TUI.entries if one.name == name)
    reader = LayerReader(EnvironmentLayer({}), file.parent, None)
    if isinstance(kind, ListOf) and not text.startswith("["):
        text = json.dumps(text.replace(",", " ").split())
    value = reader.text(kind, text, ("tui", name))
    if reader.problems:
        raise ConfigError(reader.problems[0].message, hint=reader.problems[0].hint)
    return cast("JsonValue", value)


def _key(text: str) -> str:
    key = text.strip()
    if not key:
        raise ToolError("a key is needed; Esc dismisses")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ToolError("a key has no blanks, and only ASCII characters")
    return key


def _file_of_home(names: Sequence[str]) -> Path:
    """Return the file of the home that is read under one of some names: the first that is there."""
    home = home_directory(os.environ)
    return next((one for name in names if (one := home / name).is_file()), home / names[0])


def _write(file: Path, keys: tuple[str, str], value: JsonValue, *, private: bool = False) -> None:
    from fast_agent.config.edit import with_setting
    from fast_agent.text.safe_file import write_atomic

    try:
        text = file.read_text("utf-8") if file.exists() else ""
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if private and file.exists():
            file.chmod(0o600)  # before the secret is in it; a new file is its owner's alone
        write_atomic(file, with_setting(text, *keys, value).encode())
    except (OSError, UnicodeDecodeError) as error:
        reason = os_reason(error) if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"`{file}` cannot be written: {reason}") from error
