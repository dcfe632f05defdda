"""What a card may not do when a model, not a person, chose it.

Such a card is text of unknown origin: the model may have written it, or read its path somewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from fast_agent.cards.card_files import is_configuration
from fast_agent.cards.fields import FIELDS
from fast_agent.cards.placeholder import parse_template
from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.diagnostics.rules import REACHED_CODE, REACHED_FILE
from fast_agent.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.cards.card import Card
    from fast_agent.diagnostics.rules import Rule

_CODE = ("function_tools", "tool_hooks", "shell", "files", "fetch", "mcp_connect")
_OWN_FOLDERS = frozenset({".fast-agent", ".claude", ".agents"})


class Grounds:
    """The directories whose files may come before a model.

    Args:
        roots: The directories; their links are resolved once, here.
    """

    def __init__(self, roots: Sequence[Path]) -> None:
        self.roots = tuple(root.resolve() for root in roots)

    def holds(self, path: Path) -> bool:
        """Whether a path leads to a place inside that is neither hidden nor configuration."""
        resolved = path.resolve()
        for root in self.roots:
            if resolved.is_relative_to(root):
                parts = resolved.relative_to(root).parts
                hidden = any(one.startswith(".") and one not in _OWN_FOLDERS for one in parts)
                return not hidden and not is_configuration(resolved.name)
        return False


def code_problems(card: Card) -> Iterator[Diagnostic]:
    """Find what of a card runs code or opens connections."""
    for field in _CODE:
        if getattr(card.config, field):
            message = f"`{card.config.name}` was not named by a person, and has `{field}`"
            yield _problem(card, REACHED_CODE, field, message)
    template = parse_template(card.config.instruction or "")
    if template.uses("url"):
        message = f"`{card.config.name}` was not named by a person, and fetches a web page"
        yield _problem(card, REACHED_CODE, "instruction", message)


def file_problems(
    card: Card, grounds: Grounds, workspace: Path, aliases: Mapping[str, str]
) -> Iterator[Diagnostic]:
    """Find the files a card names that it may not.

    Args:
        card: The card.
        grounds: Where files may be.
        workspace: Where paths of a card without a file start.
        aliases: `model_aliases` of the configuration.
    """
    config = card.config
    directory = config.directory or workspace
    for field, name in _named_files(config, aliases):
        place = Path(name).expanduser() if name.startswith("~") else directory / name
        if not grounds.holds(place):
            message = f"`{config.name}` names `{name}`, which it may not read"
            yield _problem(card, REACHED_FILE, field, message)


def _named_files(config: AgentConfig, aliases: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for field in FIELDS:
        if field.holds in {"path", "function"}:
            for name in _texts(getattr(config, field.name)):
                yield field.name, name.rpartition(":")[0] if field.holds == "function" else name
    for placeholder in parse_template(config.instruction or "").placeholders:
        if placeholder.name in {"file", "file_silent"}:
            yield "instruction", placeholder.argument
    if config.model is not None:
        yield from _files_of_model(config.model, aliases)


def _texts(value: object) -> Iterator[str]:
    """Give the texts of a field, whatever its form."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in cast("Mapping[str, object]", value).values():
            yield from _texts(inner)
    elif isinstance(value, Sequence):
        for inner in cast("Sequence[object]", value):
            yield from _texts(inner)


def _files_of_model(model: str, aliases: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    from fast_agent.models.spec import parse_model_spec

    try:
        options = parse_model_spec(model, aliases).options
    except ModelError:  # the check of models reports it
        return
    for name in (options.file, options.path):
        if name is not None:
            yield "model", name


def _problem(card: Card, rule: Rule, field: str, message: str) -> Diagnostic:
    span = card.span_of(field, key=field != "instruction")
    return Diagnostic(
        rule.code,
        message,
        card.path,
        span,
        rule.severity,
        hint=f"`fast-agent explain {rule.code}` says what to do",
        source_line=None if span is None else card.source_line(span.start.line),
    )
