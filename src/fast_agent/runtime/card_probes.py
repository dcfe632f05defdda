"""The checks of single cards by the rooms above the cards; none runs a card's code."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fast_agent.cards.placeholder import PLAIN, WITH_ARGUMENT, parse_template
from fast_agent.config.settings import FULL_START_SHARE, TOKEN_CHARACTERS
from fast_agent.diagnostics.diagnostic import Diagnostic, Fix
from fast_agent.diagnostics.rules import (
    FULL_WINDOW,
    INSTRUCTION_FILE,
    INSTRUCTION_SOURCE,
    SKILL_ROOT,
    UNKNOWN_PLACEHOLDER,
    UNREADABLE_INDEX,
)
from fast_agent.errors import CardError, FastAgentError, ModelError, ResourceError, TrustError
from fast_agent.prompt.instruction import is_web_address
from fast_agent.prompt.named_file import file_places, read_named_file
from fast_agent.text.span import Span
from fast_agent.text.wording import closest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.cards.card import Card
    from fast_agent.cards.load_set import Probe
    from fast_agent.cards.placeholder import Placeholder
    from fast_agent.config.settings import Settings
    from fast_agent.diagnostics.rules import Rule
    from fast_agent.mcp.server import ServerSpec


def card_probes(
    workspace: Path, settings: Settings | None, environ: Mapping[str, str]
) -> tuple[Probe, ...]:
    """Return the checks of histories, functions, skills, instructions and models.

    Args:
        workspace: The directory the program works in, absolute.
        settings: The configuration; None leaves models unchecked, whose names may be aliases.
        environ: The environment.
    """
    from fast_agent.prompt.instruction import internal_text

    plain = (
        partial(history_probe, workspace=workspace),
        _function_probe(workspace),
        partial(skill_probe, workspace=workspace),
        partial(check_instruction, workspace=workspace, internal=internal_text),
    )
    if settings is None:
        return plain
    from fast_agent.models.check import model_probe

    return (
        *plain,
        model_probe(settings, environ, cwd=workspace, ready=False),
        _window_probe(workspace, settings, environ),
    )


def _function_probe(workspace: Path) -> Probe:
    """Make the check of functions and shell directories; most cards have none."""
    check: Probe | None = None

    def probe(card: Card) -> Iterable[Diagnostic]:
        nonlocal check
        config = card.config
        if not (config.function_tools or config.tool_hooks or config.shell):
            return ()
        if check is None:
            from fast_agent.tools.functions.card_functions import FunctionCheck

            check = FunctionCheck(workspace)
        return check(card)

    return probe


def history_probe(card: Card, *, workspace: Path | None = None) -> Iterator[Diagnostic]:
    """Find what is wrong with the files under `messages`.

    Args:
        card: A card; nothing is read for one from a web address.
        workspace: Where paths of an agent made in Python start; None leaves them unread.

    Yields:
        Problems in a file at their place in it; for a file that cannot be read at all, at the name
        in the card.
    """
    directory = card.config.directory or workspace
    if not card.config.messages or directory is None or card.config.remote is not None:
        return
    from fast_agent.messages.file import check_history_file

    for index, name in enumerate(card.config.messages):
        shown = str(Path(card.path).parent / name) if card.path else None
        grant = card.config.grant
        check = None if grant is None else grant.check_read
        for problem in check_history_file(directory / name, shown=shown, check=check):
            if problem.span is not None:
                yield problem
            else:
                yield card.placed(problem, card.span_of("messages", index))


def skill_probe(card: Card, *, workspace: Path) -> Iterator[Diagnostic]:
    """Find the directories under `skills` that are none.

    Args:
        card: A card; one from a web address names no directories here.
        workspace: Where paths of an agent made in Python start.

    Yields:
        A problem at the name in the card.
    """
    config = card.config
    if not config.skills or config.remote is not None:
        return
    start = config.directory or workspace
    for index, name in enumerate(config.skills):
        path = os.path.join(start, name)  # noqa: PTH118  (as `AgentSkills` reads it)
        if os.path.isdir(path):  # noqa: PTH112
            continue
        is_file = os.path.exists(path)  # noqa: PTH110
        message = f"`{name}` {'is not a folder' if is_file else 'does not exist'}"
        # `skills: DIR` means a list of one.
        span = card.span_of("skills", index) or card.span_of("skills")
        problem = Diagnostic(
            SKILL_ROOT,
            f"the folder of skills {message}",
            severity=SKILL_ROOT.severity,
            hint="name a folder next to the card that holds skills, or write `skills: []` for none",
        )
        yield card.placed(problem, span)


def _window_probe(workspace: Path, settings: Settings, environ: Mapping[str, str]) -> Probe:
    """Make the check of context windows that tools of servers fill before any message.

    No server is asked: the sizes of their tools are those that the last run recorded.
    """
    recorded: _RecordedSizes | None = None

    def probe(card: Card) -> Iterable[Diagnostic]:
        nonlocal recorded
        config = card.config
        if not (config.servers or config.mcp_connect) or config.type not in {"agent", "smart"}:
            return ()
        if recorded is None:
            recorded = _RecordedSizes(settings, environ)
        sizes = recorded.of(config)
        if sum(sizes.values()) < _SMALL_TOOLS:
            return ()
        return _full_window(card, sizes, workspace, settings, environ)

    return probe


def _full_window(
    card: Card,
    sizes: Mapping[str, int],
    workspace: Path,
    settings: Settings,
    environ: Mapping[str, str],
) -> Iterator[Diagnostic]:
    """Yield one warning at the card's `servers` if their tools fill most of its model's window."""
    from fast_agent.models.check import select_model
    from fast_agent.models.facts import known_window

    config = card.config
    taken = sum(sizes.values()) + len(config.instruction or "") // TOKEN_CHARACTERS
    try:
        model = select_model(config, settings, environ, cwd=workspace).text
        window = known_window(model, settings, environ)
    except ModelError:
        return  # reported by the check of models
    if window is None or taken <= FULL_START_SHARE * window:
        return
    largest = sorted(sizes.items(), key=lambda item: -item[1])[:_SHOWN_SERVERS]
    parts = ", ".join(f"`{server}` about {size:,}" for server, size in largest)
    problem = Diagnostic(
        FULL_WINDOW,
        f"instruction and tools take about {taken:,} of the {window:,} tokens of the context"
        f" window of `{model}`, before the first message: {parts}",
        severity=FULL_WINDOW.severity,
        hint="limit the `tools` of the card, use fewer servers, or name a model with a larger"
        " window",
    )
    yield card.placed(problem, card.span_of("servers") or card.span_of("mcp_connect"))


class _RecordedSizes:
    """About how many tokens the tools of cards' servers take, as far as recorded."""

    def __init__(self, settings: Settings, environ: Mapping[str, str]) -> None:
        from fast_agent.config.home import home_directory
        from fast_agent.mcp.listing import SIZES_FILE, ToolSizes
        from fast_agent.mcp.server import from_settings

        self._sizes = ToolSizes(home_directory(environ) / SIZES_FILE)
        self._servers: dict[str, ServerSpec] = {}
        with suppress(FastAgentError):  # reported where servers are checked
            self._servers = {one.name: one for one in from_settings(settings.mcp)}

    def of(self, config: AgentConfig) -> dict[str, int]:
        """Return the tokens that the allowed tools of each server of a card take, by server."""
        if self._sizes.is_empty:
            return {}
        from fast_agent.mcp.server import from_connect
        from fast_agent.tools.toolbox import ServerFilter

        directory = config.directory or Path()
        servers = [self._servers[name] for name in config.servers if name in self._servers]
        with suppress(FastAgentError):
            servers += [from_connect(one, directory=directory) for one in config.mcp_connect]
        allowed = ServerFilter.of(config)
        return {
            spec.name: sum(
                size // TOKEN_CHARACTERS
                for tool, size in self._sizes.of(spec).items()
                if allowed.allows_tool(spec.name, tool)
            )
            for spec in servers
        }


_SMALL_TOOLS: Final = 1_000
"""Tokens of tools that fill half of no window."""

_SHOWN_SERVERS: Final = 4


def check_instruction(
    card: Card, *, workspace: Path, internal: Callable[[str], str] | None = None
) -> tuple[Diagnostic, ...]:
    """Find what is wrong with the placeholders of a card's instruction.

    Args:
        card: The card.
        workspace: The workspace's root directory, absolute.
        internal: Reads an internal document by its id, raising ResourceError; None where there are
            no internal documents.

    Returns:
        Warnings for unknown placeholders, errors for files and documents that cannot be had, in the
        order they stand in the instruction. Nothing is fetched.
    """
    text = card.config.instruction
    if text is None or "{{" not in text:
        return ()
    template = parse_template(text)
    found = [(item, _unknown(card, text, item)) for item in template.unknown]
    for placeholder in template.placeholders:
        problem = _problem(card.config, placeholder, workspace, internal)
        if problem is not None:
            found.append((placeholder, _diagnostic(card, text, placeholder, *problem)))
    return tuple([item for _, item in sorted(found, key=lambda pair: pair[0].start)])


def _problem(
    config: AgentConfig,
    placeholder: Placeholder,
    workspace: Path,
    internal: Callable[[str], str] | None,
) -> tuple[Rule, str, str | None] | None:
    """Try what a placeholder names; return the rule it breaks, the message and the hint."""
    try:
        match placeholder.name:
            case "file" | "file_silent" if config.remote is None:  # else the card itself is refused
                read_named_file(placeholder, file_places(config, workspace), config.grant)
            case "internal":
                if internal is None:
                    return INSTRUCTION_SOURCE, f"there is no document for `{placeholder}`", None
                internal(placeholder.argument)
            case "agentInternalResources" if not (config.resource_tools or config.type == "smart"):
                message = f"`{config.name}` has a list of documents that it cannot read"
                hint = "write `resource_tools: true`, or leave the placeholder out"
                return UNREADABLE_INDEX, message, hint
            case "url" if not is_web_address(placeholder.argument):
                message = f"`{placeholder}` is not an `http` or `https` address"
                return INSTRUCTION_SOURCE, message, None
            case _:
                pass
    except (CardError, TrustError) as error:
        return INSTRUCTION_FILE, error.message, error.hint
    except ResourceError as error:
        return INSTRUCTION_SOURCE, error.message, error.hint
    return None


def _unknown(card: Card, text: str, placeholder: Placeholder) -> Diagnostic:
    raw = text[placeholder.start : placeholder.end]
    name = placeholder.name.strip()
    meant = closest(name, (*PLAIN, *WITH_ARGUMENT))
    escape = f"write `\\{raw}` to send the model the braces themselves"
    if meant is None:
        message, hint, replacement = f"`{raw}` is not a placeholder", escape, None
    elif meant in WITH_ARGUMENT and not placeholder.argument:
        message, replacement = f"`{raw}` does not say which one", None
        hint = f"write what it names after a colon: `{{{{{meant}:…}}}}`"
    else:
        argument = f":{placeholder.argument}" if meant in WITH_ARGUMENT else ""
        replacement = f"{{{{{meant}{argument}}}}}"
        message, hint = f"`{raw}` is not a placeholder", f"did you mean `{replacement}`?"
    return _diagnostic(card, text, placeholder, UNKNOWN_PLACEHOLDER, message, hint, replacement)


def _diagnostic(
    card: Card,
    text: str,
    placeholder: Placeholder,
    rule: Rule,
    message: str,
    hint: str | None,
    replacement: str | None = None,
) -> Diagnostic:
    exact = _place(card, text, placeholder)
    problem = Diagnostic(
        rule.code,
        message,
        severity=rule.severity,
        hint=hint,
        fix=Fix(exact, replacement) if exact and replacement else None,
    )
    return card.placed(problem, exact or card.span_of("instruction"))


def _place(card: Card, text: str, placeholder: Placeholder) -> Span | None:
    """Find a placeholder in the card's file: the same text, the same time it occurs.

    In YAML the instruction is indented, folded or quoted, so offsets in it do not reveal the place.
    """
    raw = text[placeholder.start : placeholder.end]
    before = text.count(raw, 0, placeholder.start)
    for line, column in _occurrences(card, raw):
        if before == 0:
            return Span.at(line, column, len(raw))
        before -= 1
    return None


def _occurrences(card: Card, raw: str) -> Iterator[tuple[int, int]]:
    region = card.span_of("instruction")
    document = card.document
    if region is None or document is None:
        return
    last = region.end.line
    if document.body is not None and region == document.body_span():
        last = document.body_line + document.body.count("\n")
    for number in range(region.start.line, last + 1):
        line = document.source.line(number)
        at = line.find(raw, region.start.column - 1 if number == region.start.line else 0)
        while at >= 0:
            yield number, at + 1
            at = line.find(raw, at + len(raw))
