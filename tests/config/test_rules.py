"""The examples on the pages of the rules are what the rules say they are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from fast_agent.diagnostics.rulebook import rules
from fast_agent.errors import ConfigError

if TYPE_CHECKING:
    from tests.config.conftest import Place

    from fast_agent.diagnostics.rules import Rule

RULES = [rule for rule in rules().values() if rule.startswith("FA3")]
EXAMPLES = [
    pytest.param(rule, *blocks, id=rule.code)
    for rule in RULES
    if len(blocks := re.findall(r"```yaml\n(.*?)```", rule.page, re.DOTALL)) == 2
]


def test_most_pages_have_examples() -> None:
    assert len(EXAMPLES) >= 6


@pytest.mark.parametrize(("rule", "wrong", "right"), EXAMPLES)
def test_the_examples_of_a_page(place: Place, rule: Rule, wrong: str, right: str) -> None:
    if rule.severity == "error":
        assert [problem.code for problem in place.problems(wrong)] == [rule.code]
    else:
        place.write(wrong)
        assert [note.code for note in place.load().warnings] == [rule.code]
    place.write(right)
    place.load()


def test_the_examples_of_variables(place: Place) -> None:
    place.environ["SHELL__TIMEOUT_SECONDS"] = "soon"
    assert place.problem().code == "FA308"
    place.environ.update(SHELL__TIMEOUT_SECONDS="30", MCP__SERVERS__TIME__ARGS='["--utc"]')
    place.write("mcp: {servers: {time: {command: mcp-server-time}}}")
    assert place.load().mcp.servers["time"].args == ("--utc",)


def test_every_problem_is_of_a_rule_of_the_family(place: Place) -> None:
    place.write("nope: 1\nmcp: {servers: {t: {}}}\nlocal: {threads: x}\nskills: ${NOPE}\n")
    with pytest.raises(ConfigError) as caught:
        place.load()
    assert {problem.code for problem in caught.value.diagnostics} <= {rule.code for rule in RULES}
    assert len(caught.value.diagnostics) == 4
