"""Card inputs: the files an agent is made from, in addition to its card."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fast_agent.cards.placeholder import parse_template
from fast_agent.errors import CardError
from fast_agent.prompt.named_file import file_places

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fast_agent.cards.agent_config import AgentConfig


def card_inputs(config: AgentConfig, *, workspace: Path) -> Iterator[str]:
    """Yield the files an agent is made from in addition to its card.

    Args:
        config: The agent; one from a web address names no files here.
        workspace: Where relative paths of an agent made in Python start, absolute.

    Yields:
        Absolute paths, which may be missing: histories, files of functions and hooks with the
        Python files beside them, folders of skills, files the instruction includes.
    """
    if config.remote is not None:
        return
    start = os.fspath(config.directory or workspace)
    for name in (*config.messages, *(config.skills or ())):
        yield os.path.join(start, name)  # noqa: PTH118
    folders: dict[str, None] = {}
    for function in _functions(config):
        file = os.path.join(start, function.rpartition(":")[0])  # noqa: PTH118
        yield file
        folders[os.path.dirname(file)] = None  # noqa: PTH120
    for folder in folders:
        yield from _python_files(folder)
    if "{{file" in (config.instruction or ""):
        yield from _included(config, workspace)


def _functions(config: AgentConfig) -> Iterator[str]:
    hooks = config.tool_hooks
    groups = (hooks,) if isinstance(hooks, tuple) else tuple(hooks.values())
    for group in (config.function_tools, *groups):
        yield from (one for one in group if isinstance(one, str))


def _python_files(folder: str) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            yield from sorted(one.path for one in entries if one.name.endswith(".py"))
    except OSError:
        return


def _included(config: AgentConfig, workspace: Path) -> Iterator[str]:
    try:
        places = file_places(config, workspace)
    except CardError:
        return
    for placeholder in parse_template(config.instruction or "").placeholders:
        if placeholder.name in {"file", "file_silent"}:
            yield from (os.path.join(place, placeholder.argument) for place in places)  # noqa: PTH118
