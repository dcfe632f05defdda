from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from fast_agent.cards.document import read_yaml
from fast_agent.cards.fields import CARD_TYPES, FIELDS_OF
from fast_agent.cards.schema import schema
from fast_agent.cards.validate import Origin, validate_card
from fast_agent.text.source import Source
from fast_agent.text.yaml_writer import write_yaml

if TYPE_CHECKING:
    from fast_agent.cards.agent_config import CardType
    from fast_agent.text.json_value import JsonObject, JsonValue

CardObject: TypeAlias = "dict[str, JsonValue]"
CardObjects: TypeAlias = "Callable[[CardType], st.SearchStrategy[CardObject]]"


class Fault(Protocol):
    @property
    def message(self) -> str: ...


class Validator(Protocol):
    def is_valid(self, instance: object, /) -> bool: ...
    def iter_errors(self, instance: object, /) -> Iterator[Fault]: ...


def validator(document: JsonObject) -> Validator:
    return cast("Validator", Draft202012Validator(document))


UNION = validator(schema())
BY_TYPE = {card_type: validator(schema(card_type)) for card_type in CARD_TYPES}

# What a schema says of the text `${NAME}` cannot be what the loader says of the variable's value.
# A schema for JSON cannot distinguish the numbers 3 and 3.0, as YAML does, nor compare two numbers.
EXCEPTIONS: dict[str, Callable[[JsonValue], bool]] = {
    "a variable": lambda value: isinstance(value, str) and "${" in value,
    "a whole number written with a point": lambda value: (
        isinstance(value, float) and value.is_integer()
    ),
    "a vote that cannot be won": lambda value: (
        isinstance(value, Mapping) and _number(value, "k", 3) > _number(value, "max_samples", 50)
    ),
}


def _number(card: Mapping[str, JsonValue], key: str, default: int) -> int:
    value = card.get(key, default)
    return value if isinstance(value, int) else 0


def accepts(card: CardObject) -> bool:
    """Ask the loader."""
    reading = read_yaml(Source("card.yaml", write_yaml(card)), multi_card=False)
    if reading.diagnostics:
        return False
    (document,) = reading.documents
    _, found = validate_card(document, Origin("card"), {})
    return not [one for one in found if one.severity == "error"]


def is_excepted(value: JsonValue) -> bool:
    if any(holds(value) for holds in EXCEPTIONS.values()):
        return True
    if isinstance(value, Mapping):
        return any(is_excepted(key) or is_excepted(item) for key, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return any(is_excepted(item) for item in value)
    return False


def agree(card: CardObject) -> bool:
    """Check that schema and loader take a card alike, and say how."""
    taken = accepts(card)
    faults = [error.message for error in UNION.iter_errors(card)]
    assert (not faults) == taken, (card, faults)
    for card_type in CARD_TYPES:
        if card.get("type") == card_type:
            assert BY_TYPE[card_type].is_valid(card) == taken
    return taken


@pytest.mark.spec("CHECK-4")
@pytest.mark.parametrize("card_type", CARD_TYPES)
def test_valid_cards_are_valid_to_both(card_type: CardType, card_objects: CardObjects) -> None:
    @given(card_objects(card_type).filter(lambda card: not is_excepted(card)))
    @settings(max_examples=40)
    def prove(card: CardObject) -> None:
        assert agree(card)

    prove()


@pytest.mark.spec("CHECK-4")
@pytest.mark.parametrize("card_type", CARD_TYPES)
def test_wrong_cards_are_wrong_to_both(card_type: CardType, almost_cards: CardObjects) -> None:
    seen = {True: 0, False: 0}

    @given(almost_cards(card_type).filter(lambda card: not is_excepted(card)))
    @settings(max_examples=90)
    def prove(card: CardObject) -> None:
        seen[agree(card)] += 1

    prove()
    assert seen[True] > 10
    assert seen[False] > 10


@pytest.mark.parametrize(
    ("card", "taken"),
    [
        ({"instruction": "x"}, True),
        ({}, False),
        ({"type": None, "instruction": "x"}, True),
        ({"type": "Evaluator-Optimizer", "generator": "a", "evaluator": "b"}, True),
        ({"type": "maker", "worker": "a"}, True),
        ({"type": "AGENT", "instruction": "x", "worker": "a"}, False),
        ({"type": "agnet", "instruction": "x"}, False),
        ({"type": 3, "instruction": "x"}, False),
        ({"type": "chain", "sequence": []}, False),
        ({"type": "chain", "sequence": ["a"], "instruction": ""}, True),
        ({"type": "chain", "sequence": ["a"], "instruction": None}, True),
        ({"instruction": "  "}, False),
        ({"instruction": "x", "name": "a/b"}, False),
        ({"instruction": "x", "name": ".a"}, False),
        ({"instruction": "x", "name": "a\n"}, False),
        ({"instruction": "x", "name": "a b"}, True),
        ({"instruction": "x", "use_history": "no"}, False),
        ({"instruction": "x", "use_history": 1}, False),
        ({"instruction": "x", "max_parallel": "two"}, False),
        ({"instruction": "x", "max_parallel": True}, False),
        ({"instruction": "x", "model": 3}, False),
        ({"instruction": "x", "skills": None}, True),
        ({"instruction": "x", "skills": []}, True),
        ({"instruction": "x", "skills": "a"}, True),
        ({"instruction": "x", "schema_version": 2}, False),
        ({"instruction": "x", "function_tools": "a.py:b"}, True),
        ({"instruction": "x", "function_tools": ["a.py"]}, False),
        ({"instruction": "x", "tool_hooks": {"before_llm_call": "a.py:b"}}, True),
        ({"instruction": "x", "tool_hooks": {"before_llm": ["a.py:b"]}}, False),
        ({"instruction": "x", "history_mode": "fork"}, True),
        ({"instruction": "x", "history_mode": "fork", "history_source": "none"}, False),
        ({"instruction": "x", "history_mode": "fork", "history_source": None}, True),
        ({"instruction": "x", "request_params": {"maxTokens": 5}}, True),
        ({"instruction": "x", "request_params": {"maxTokens": 5, "max_tokens": 5}}, False),
        ({"instruction": "x", "request_params": {"max_token": 5}}, False),
        ({"instruction": "x", "mcp_connect": ["a", {"target": "b", "env": {"C": ""}}]}, True),
        ({"instruction": "x", "mcp_connect": [{"name": "b"}]}, False),
        ({"instruction": "x", "tool_input_schema": {"type": "object"}}, True),
        ({"instruction": "x", "tool_input_schema": {"type": "array"}}, False),
        ({"type": "MAKER", "worker": "a", "k": "auto"}, True),
        ({"type": "MAKER", "worker": "a", "k": 0}, False),
        ({"type": "MAKER", "worker": "a", "k": "auto", "target_success": 0.999}, True),
        ({"type": "MAKER", "worker": "a", "k": "auto", "target_success": 1}, False),
        ({"type": "MAKER", "worker": "a", "k": "auto", "steps": 0}, False),
        (
            {"type": "orchestrator", "agents": ["a"], "instruction": "x", "plan_iterations": -1},
            True,
        ),
        (
            {"type": "orchestrator", "agents": ["a"], "instruction": "x", "plan_iterations": 0},
            False,
        ),
    ],
)
def test_decided_cases(card: CardObject, taken: bool) -> None:
    assert agree(card) is taken


def test_a_variable_may_stand_for_what_is_no_text() -> None:
    card: CardObject = {"instruction": "x", "max_parallel": "${MANY:3}", "default": "${D}"}
    assert UNION.is_valid(card)
    assert not UNION.is_valid({**card, "max_parallel": "${MANY:3} or so"})


def test_frontmatter_may_leave_the_instruction_to_the_body() -> None:
    front = validator(schema(body=True))
    assert front.is_valid({"name": "a"})
    assert front.is_valid({"type": "router", "agents": ["a"]})
    assert front.is_valid({"name": "a", "instruction": " "})  # a blank one is as good as none
    assert not UNION.is_valid({"name": "a"})
    assert not front.is_valid({"type": "router"})
    assert not front.is_valid({"type": "router", "agents": []})


@pytest.mark.parametrize("card_type", [None, *CARD_TYPES])
def test_schemas_are_schemas_and_say_what_fields_are(card_type: CardType | None) -> None:
    document = json.loads(json.dumps(schema(card_type)))
    Draft202012Validator.check_schema(document)
    assert document["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    cards = [document] if card_type else list(document["$defs"].values())
    for card in cards:
        fields = FIELDS_OF[card["title"]]
        assert set(card["properties"]) == set(fields)
        for name, described in card["properties"].items():
            if name != "type":
                assert described["description"].startswith(fields[name].doc)
                assert described.get("default") == fields[name].default_for(card["title"])


def test_a_type_of_one_schema_must_be_said() -> None:
    assert not BY_TYPE["chain"].is_valid({"sequence": ["a"]})
    assert BY_TYPE["chain"].is_valid({"type": "Chain", "sequence": ["a"]})
    assert BY_TYPE["agent"].is_valid({"instruction": "x"})
