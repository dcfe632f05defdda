"""The fields of decorators, as Python types: `src/fast_agent/agent_fields.py` is made from here."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

from fast_agent.cards.agent_config import (
    ChildHistory,
    Compaction,
    McpConnect,
    RequestParams,
    UsageLimits,
)
from fast_agent.cards.fields import CARD_TYPES, FIELD_NAMED, FIELDS_OF
from fast_agent.schema.kinds import (
    AnyMapping,
    AnyOf,
    Flag,
    FunctionName,
    Integer,
    JsonSchema,
    ListOf,
    MapOf,
    Number,
    OneOf,
    Record,
    Text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_agent.cards.agent_config import CardType
    from fast_agent.cards.fields import Field
    from fast_agent.schema.kinds import Kind

_HEAD = '''"""The fields of every card type, as the keyword arguments its decorator takes.

Made by docs/generate.py from the table of card fields; change that, not this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Required, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fast_agent.cards.agent_config import (
        AgentsAsToolsOptions,
        ChildHistory,
        Compaction,
        FunctionRef,
        McpConnect,
        RequestParams,
    )
    from fast_agent.text.json_value import JsonObject
'''
_ARGUMENTS = frozenset({"name", "instruction"})
_ONLY_IN_FILES = frozenset({"type", "schema_version"})
_VALUES = (RequestParams, UsageLimits, ChildHistory, Compaction, McpConnect)
_OPTIONS = "agents_as_tools_options"
_OPTIONS_DOC = "the fields on children as one value; single ones go before it"


def python_fields() -> str:
    """Make the module."""
    text = _HEAD + "".join(
        f"\n\nclass {class_name(card_type)}(TypedDict, total=False):\n{_body(card_type)}"
        for card_type in CARD_TYPES
        if card_type != "smart"  # which has the fields of `agent`
    )
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", "fields.py", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return done.stdout


def class_name(card_type: CardType) -> str:
    """Return the name of the class with the fields of a type: `RouterFields`."""
    return "".join(word[0].upper() + word[1:].lower() for word in card_type.split("_")) + "Fields"


def _body(card_type: CardType) -> str:
    fields = [
        field
        for name, field in FIELDS_OF[card_type].items()
        if name not in _ARGUMENTS | _ONLY_IN_FILES and field.deprecated is None
    ]
    lines = [
        f'    """The fields of type `{card_type}`, in addition to name and instruction."""',
        "",
    ]
    for field in fields:
        lines += _entry(field.name, _annotation(field, card_type), field.doc)
    if "history_source" in FIELDS_OF[card_type]:
        lines += _entry(_OPTIONS, "AgentsAsToolsOptions | None", _OPTIONS_DOC)
    return "\n".join(lines) + "\n"


def _entry(name: str, annotation: str, doc: str) -> Iterator[str]:
    yield f"    {name}: {annotation}"
    sentence = f"{doc[0].upper()}{doc[1:]}."
    for line in textwrap.wrap(f'"""{sentence}"""', 96, break_on_hyphens=False):
        yield f"    {line}"


def _annotation(field: Field, card_type: CardType) -> str:
    annotation = python_type(field.kind)
    if card_type in FIELD_NAMED[field.name].required:
        return f"Required[{annotation}]"
    return f"{annotation} | None"


def python_type(kind: Kind) -> str:
    """Return the annotation of what a kind takes in Python."""
    return " | ".join(dict.fromkeys(_types(kind)))


def _types(kind: Kind) -> Iterator[str]:  # noqa: C901 - one case a kind
    match kind:
        case Flag():
            yield "bool"
        case Integer():
            yield "int"
        case Number():
            yield "float"
        case OneOf(choices):
            yield f"Literal[{', '.join(map(json.dumps, choices))}]"
        case ListOf(item, single=single):
            if single:
                yield from _types(item)
            yield f"Sequence[{python_type(item)}]"
        case MapOf(value):
            yield f"Mapping[str, {python_type(value)}]"
        case AnyOf(kinds):
            for one in kinds:
                yield from _types(one)
        case Record(build=build):
            if build in _VALUES:
                yield build.__name__
            yield "Mapping[str, Any]"
        case FunctionName():
            yield "FunctionRef"
        case JsonSchema() | AnyMapping():
            yield "JsonObject"
        case Text():
            yield "str"
