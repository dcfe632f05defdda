"""Cards made in Python: the arguments of a decorator, held to the same rules as a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from fast_agent.cards.document import CardDocument
from fast_agent.cards.validate import Origin, validate_card
from fast_agent.errors import CardError
from fast_agent.text.source import Source
from fast_agent.text.yaml_document import YamlDocument

if TYPE_CHECKING:
    from fast_agent.cards.agent_config import AgentConfig, CardType, FunctionRef
    from fast_agent.cards.card import Card

_FUNCTIONS = ("function_tools", "tool_hooks")


def code_card(
    card_type: CardType, name: str, instruction: str | None, fields: Mapping[str, object]
) -> Card:
    """Make a card from Python values.

    Args:
        card_type: Its type.
        name: Its name.
        instruction: Its instruction, taken as it is; None leaves it to the type.
        fields: Its other fields as a card would have them; None is unset. Functions may be
            callables.

    Returns:
        The card.

    Raises:
        CardError: With everything that is wrong.
    """
    given = {key: value for key, value in fields.items() if value is not None}
    functions = {key: given.pop(key) for key in _FUNCTIONS if _holds_callable(given.get(key))}
    written = {"type": card_type, "name": name, **_plain(given)}
    if instruction is not None:
        written["instruction"] = instruction
    document = CardDocument(Source("", ""), YamlDocument("", 1, written))
    card, found = validate_card(document, Origin(None), {})
    errors = [problem for problem in found if problem.severity == "error"]
    if errors:
        problems = tuple(
            replace(problem, message=f"agent `{name}`: {problem.message}", span=None, fix=None,
                    source_line=None)
            for problem in errors
        )  # fmt: skip
        raise CardError(problems[0].message, hint=problems[0].hint, diagnostics=problems)
    config: AgentConfig = card.config
    for key, value in functions.items():
        config = replace(config, **{key: _functions(value)})
    return replace(card, config=config, path="", document=None)


def _plain(value: object) -> Any:
    """Give a value as a card file would hold it: sequences as lists."""
    if isinstance(value, Mapping):
        mapping = cast("Mapping[str, object]", value)
        return {key: _plain(item) for key, item in mapping.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in cast("Sequence[object]", value)]
    return value


def _holds_callable(value: object) -> bool:
    if isinstance(value, Mapping):
        mapping = cast("Mapping[str, object]", value)
        return any(map(_holds_callable, mapping.values()))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return any(callable(item) for item in cast("Sequence[object]", value))
    return callable(value)


def _functions(value: object) -> object:
    if isinstance(value, Mapping):
        mapping = cast("Mapping[str, object]", value)
        return {point: _functions(functions) for point, functions in mapping.items()}
    if isinstance(value, str) or callable(value):
        return (cast("FunctionRef | Callable[..., Any]", value),)
    return tuple(cast("Sequence[FunctionRef]", value))
