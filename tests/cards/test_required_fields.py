"""The fields that a type of card needs."""

from __future__ import annotations

import pytest
from tests.cards.test_validate import agent, check, code_and_text


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("type: chain\n", ["sequence"]),
        ("type: parallel\nfan_in: a\n", ["fan_out"]),
        ("type: evaluator_optimizer\n", ["generator", "evaluator"]),
        ("type: MAKER\nworker: null\n", ["worker"]),
        ("type: router\ninstruction: Hi\n", ["agents"]),
        ("type: orchestrator\ninstruction: Hi\n", ["agents"]),
        ("type: iterative_planner\ninstruction: Hi\n", ["agents"]),
    ],
)
def test_required_fields(text: str, missing: list[str]) -> None:
    _, found = check(text)
    assert [one.code for one in found] == ["FA104"] * len(missing)
    for one, name in zip(found, missing, strict=True):
        assert f"needs `{name}`" in one.message
        assert code_and_text(one) == ("FA104", text.split()[1])


def test_a_required_list_needs_an_item() -> None:
    _, (found,) = check("type: chain\nsequence: []\n")
    assert code_and_text(found) == ("FA104", "[]")
    assert agent("agents: []").agents == ()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("type: chain\nsequence: {a: b}\n", "FA102"),
        ("type: chain\nsequense: [a]\n", "FA101"),
        ("type: chain\nsequence: ${NOPE}\n", "FA122"),
    ],
)
def test_a_required_field_that_is_wrong_is_not_missing_as_well(text: str, code: str) -> None:
    assert [one.code for one in check(text)[1]] == [code]
