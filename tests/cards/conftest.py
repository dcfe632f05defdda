"""Made-up cards: objects like the frontmatter of a card, valid ones and almost valid ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, assert_never

import pytest
from hypothesis import strategies as st

from fast_agent.cards.fields import FIELDS_OF
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
    from collections.abc import Callable

    from fast_agent.cards.agent_config import CardType
    from fast_agent.cards.fields import Field
    from fast_agent.schema.kinds import Kind
    from fast_agent.text.json_value import JsonValue

CardObject: TypeAlias = "dict[str, JsonValue]"
Values: TypeAlias = "st.SearchStrategy[JsonValue]"

AWKWARD = (
    *(
        "yes",
        "No",
        "on",
        "null",
        "~",
        "true",
        "1",
        "1e3",
        "0o7",
        ".inf",
        "-",
        "- a",
        "a: b",
        "a #b",
    ),
    *(
        "#a",
        "&a",
        "*a",
        "!a",
        "|",
        ">",
        "%a",
        "@a",
        "'a'",
        '"a"',
        "[a]",
        "{a}",
        "a, b",
        "2026-01-01",
    ),
    *("---", "a\n---\nb", "---\ntype: agent\n---\nx", "---USER", "a\n---USER\nb", "---SYSTEM\nx"),
    *(
        "```\n---USER\n```",
        " lead",
        "trail ",
        "\nlead",
        "trail\n",
        "trail\n\n",
        "a\n\n\nb",
        "tab\tx",
    ),
    *(
        "\ttab",
        "a\rb",
        "a\r\nb",
        "a\x85b",
        "a\u2028b",
        "\ufeffa",
        "漢字",
        "😀",
        "e\u0301",
        "\\",
        "a\\n",
    ),
    *("${HOME}", "$${X}", "${X:y}", "$", "{{agents}}", "{{file:x.md}}", "\\{{", "+++", "# Title"),
    *("  indented\nfirst", "a\n \nb", "a  \nb", "...", "a\n...\nb", "---\n", "--- ", "a\n--- \nb"),
)

words = st.one_of(
    st.sampled_from(AWKWARD),
    st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12
    ),
    st.text(st.sampled_from(list("ab:#- \n'\"|>,[]{}&*!%@`?~.01e\\$")), min_size=1, max_size=8),
)
texts = words.filter(lambda text: bool(text.strip()))
names = st.text(st.sampled_from(list("abcXYZ019_- .é漢")), min_size=1, max_size=8).filter(
    lambda text: bool(text.strip()) and text == text.strip() and not text.startswith(".")
)
anything: Values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 99), st.sampled_from([0.5, 1e-7]), words),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(words, inner, max_size=2)),
    max_leaves=4,
)


def of_kind(kind: Kind, *, filled: bool = False) -> Values:  # noqa: C901
    """Make values a kind allows; `filled` asks for at least one item of a list."""
    match kind:
        case Text():
            return words | st.just("") if kind.blank else texts
        case FunctionName():
            return st.builds(
                "{}.py:{}".format,
                st.sampled_from(["tools", "./tools", "lib/a b", "../x"]),
                st.sampled_from(["add", "Größe", "_f1"]),
            )
        case Flag():
            return st.booleans()
        case Integer():
            bounded = st.integers(kind.minimum, kind.maximum)
            return bounded | st.sampled_from(kind.also) if kind.also else bounded
        case Number():
            low = kind.minimum if kind.above is None else kind.above
            if kind.below is not None:
                return st.floats(low, kind.below, exclude_min=True, exclude_max=True)
            high = 1000.0 if kind.maximum is None else kind.maximum
            return st.floats(low, high, exclude_min=kind.above is not None) | st.just(1)
        case OneOf():
            return st.sampled_from(kind.choices)
        case ListOf():
            several: Values = st.lists(of_kind(kind.item), min_size=int(filled), max_size=3)
            return of_kind(kind.item) | several if kind.single else several
        case MapOf():
            keys = texts if kind.keys is None else st.sampled_from(kind.keys)
            return st.dictionaries(keys, of_kind(kind.value), max_size=3)
        case Record():
            return record(kind)
        case AnyOf():
            return st.one_of(*[of_kind(one) for one in kind.kinds])
        case JsonSchema():
            return st.dictionaries(words, anything, max_size=2).map(
                lambda value: {**value, "type": "object"}
            )
        case AnyMapping():
            return st.dictionaries(words, anything, max_size=2)
    assert_never(kind)


def record(kind: Record) -> Values:
    """Make records in either spelling of their keys."""
    required: dict[str, Values] = {}
    optional: dict[str, Values] = {}
    for entry in kind.entries:
        (required if entry.required else optional)[entry.name] = of_kind(entry.kind)
    spellings = {entry.name: entry.spelling or entry.name for entry in kind.entries}

    def respell(value: CardObject) -> Values:
        return st.booleans().map(
            lambda other: {spellings[key]: item for key, item in value.items()} if other else value
        )

    return st.fixed_dictionaries(required, optional=optional).flatmap(respell)


def of_field(field: Field, card_type: CardType) -> Values:
    """Make values a field allows on a type, null among them where it is optional."""
    if field.name == "name":
        return names
    required = card_type in field.required
    value = of_kind(field.kind, filled=required)
    return value if required else value | st.none()


def card_object(card_type: CardType) -> st.SearchStrategy[CardObject]:
    """Make cards that are valid by the field table."""
    required: dict[str, Values] = {"type": st.just(card_type), "name": names}
    optional: dict[str, Values] = {}
    for field in FIELDS_OF[card_type].values():
        if field.name not in required and field.name != "history_mode":
            chosen = required if card_type in field.required else optional
            chosen[field.name] = of_field(field, card_type)
    some = st.lists(st.sampled_from(sorted(optional)), max_size=6, unique=True)

    def build(chosen: list[str]) -> st.SearchStrategy[CardObject]:
        return st.fixed_dictionaries({**required, **{name: optional[name] for name in chosen}})

    return some.flatmap(build)


@st.composite
def almost_card(draw: st.DrawFn, card_type: CardType) -> CardObject:
    """Make cards of which one thing was changed, often into something wrong."""
    card = dict(draw(card_object(card_type)))
    key = draw(st.sampled_from(sorted(card)) | st.sampled_from(sorted(FIELDS_OF[card_type])))
    change = draw(st.sampled_from(["value", "drop", "rename", "nothing", "other", "inside"]))
    value = card.get(key)
    match change:
        case "value":
            card[key] = draw(anything)
        case "drop":
            card.pop(key, None)
        case "rename" if key in card:
            card[draw(st.sampled_from([key.upper(), f"{key}s", key[1:], "maxTokens"]))] = card.pop(
                key
            )
        case "other":
            card["history_mode"] = draw(st.sampled_from(["scratch", "fork", "fork_and_merge", "x"]))
        case "inside" if isinstance(value, dict):
            card[key] = {**value, draw(words): draw(anything)}
        case "inside" if isinstance(value, list):
            card[key] = [*value, draw(anything)]
        case _:
            pass
    return card


@pytest.fixture(scope="session")
def card_objects() -> Callable[[CardType], st.SearchStrategy[CardObject]]:
    """Strategies of valid cards by type."""
    return card_object


@pytest.fixture(scope="session")
def almost_cards() -> Callable[[CardType], st.SearchStrategy[CardObject]]:
    """Strategies of cards that may be wrong in one place, by type."""
    return almost_card
