"""The generated parts of the packaged documents, made from the tables of the code."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast, get_args

from guides import table

from fast_agent.cards.agent_config import HookPoint
from fast_agent.cards.fields import CARD_TYPES, FIELD_NAMED, FIELDS, FIELDS_OF
from fast_agent.config.providers import PROVIDERS
from fast_agent.models.spec import model_aliases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from fast_agent.cards.agent_config import CardType
    from fast_agent.cards.fields import Field
    from fast_agent.schema.kinds import Record

_POINTS = {
    "before_llm_call": "before each model request",
    "after_llm_call": "after each answer of the model",
    "before_tool_call": "before the tool calls of an answer run",
    "after_tool_call": "when their results are there",
    "after_turn_complete": "at the end of the turn",
}


class Parts:
    """What makes each part.

    Args:
        kind_words: Says what a field may hold.
        default: Says what a field is when it is not given, on cards of a type or on any.
        records: Gives the records inside a kind, with their titles.
        pages: Makes whole pages by name, whose first line is a heading.
    """

    def __init__(
        self,
        kind_words: Callable[[object], str],
        default: Callable[[Field, CardType | None], str],
        records: Callable[[object, str], Iterator[tuple[str, Record]]],
        pages: dict[str, Callable[[], str]],
    ) -> None:
        self._kind_words = kind_words
        self._default = default
        self._records = records
        self._pages = pages

    def all(self) -> dict[str, Callable[[str], str]]:
        """Give the makers by name."""
        made: dict[str, Callable[[str], str]] = {
            "types": self._types,
            "fields": self._fields,
            "fields-named": self._fields_named,
            "record": self._record,
            "hook-points": self._hook_points,
            "providers": self._providers,
            "aliases": self._aliases,
            "routing": self._routing,
        }
        for name, make in self._pages.items():
            made[name] = lambda _, make=make: make().partition("\n")[2]
        return made

    def _types(self, _: str) -> str:
        common = len(_common())
        rows = (
            (f"`{one}`", ", ".join(f"`{field.name}`" for field in FIELDS if one in field.required))
            for one in CARD_TYPES
        )
        return f"Every type has the {common} fields of the first table below.\n\n" + table(
            ("type", "must have"), rows
        )

    def _fields(self, which: str) -> str:
        if which == "common":
            return self._field_table(_common())
        card_type = cast("CardType", which)
        kept: set[str] = set(FIELDS_OF["agent"]) if which != "agent" else set()
        own = [
            field
            for field in FIELDS_OF[card_type].values()
            if field not in _common()
            and (
                field.name not in kept
                or card_type in field.required
                or field.default_for(card_type) != field.default_for("agent")
            )
        ]
        shared = sorted(
            name
            for name in kept & set(FIELDS_OF[card_type])
            if FIELD_NAMED[name] not in _common() and FIELD_NAMED[name] not in own
        )
        text = self._field_table(own, card_type)
        if shared:
            text += "\n\nAs for `agent`: " + ", ".join(f"`{name}`" for name in shared) + "."
        return text

    def _fields_named(self, names: str) -> str:
        return self._field_table([FIELD_NAMED[name] for name in names.split()])

    def _field_table(self, fields: Iterable[Field], card_type: CardType | None = None) -> str:
        def default(field: Field) -> str:
            return "required" if card_type in field.required else self._default(field, card_type)

        rows = (
            (f"`{field.name}`", self._kind_words(field.kind), default(field), _meaning(field))
            for field in fields
        )
        return table(("field", "value", "default", "meaning"), rows)

    def _record(self, title: str) -> str:
        for field in FIELDS:
            for found, record in self._records(field.kind, field.name):
                if found == title:
                    rows = (
                        (f"`{entry.name}`", self._kind_words(entry.kind), entry.doc)
                        for entry in record.entries
                    )
                    return table(("key", "value", "meaning"), rows)
        raise KeyError(title)

    def _hook_points(self, _: str) -> str:
        rows = ((f"`{point}`", _POINTS[point]) for point in get_args(HookPoint))
        return table(("point", "when"), rows)

    def _providers(self, _: str) -> str:
        rows = (
            (f"`{one.name}`", one.label, ", ".join(f"`{name}`" for name in one.key_variables))
            for one in PROVIDERS.values()
        )
        return table(("provider", "models of", "key"), rows)

    def _aliases(self, _: str) -> str:
        rows = ((f"`{name}`", f"`{spec}`") for name, spec in model_aliases({}).items())
        return table(("name", "stands for"), rows)

    def _routing(self, _: str) -> str:
        return "Both may be set for all called agents, and for single ones under `child_history`."


def _common() -> list[Field]:
    return [field for field in FIELDS if field.types == frozenset(CARD_TYPES)]


def _meaning(field: Field) -> str:
    return field.doc + (f" (deprecated: {field.deprecated})" if field.deprecated else "")
