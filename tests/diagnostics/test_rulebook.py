from __future__ import annotations

import re
import subprocess
import sys

import pytest

from fast_agent.diagnostics.rulebook import docs_page, explain, find_rule, index_rules, rules
from fast_agent.diagnostics.rules import PAGES, Rule
from fast_agent.errors import ConfigError


@pytest.mark.spec("CARDS-3")
def test_codes_and_names_are_unique_and_in_order() -> None:
    known = rules()
    assert list(known) == sorted(known)
    assert all(code == rule.code for code, rule in known.items())
    assert all(known[rule.code] is rule for rule in known.values())
    one = Rule("FA901", "one", "error")
    with pytest.raises(ValueError, match="FA901"):
        index_rules([one, Rule("FA901", "two", "error")])
    with pytest.raises(ValueError, match="one"):
        index_rules([one, Rule("FA902", "one", "error")])


@pytest.mark.spec("CHECK-5")
@pytest.mark.parametrize("rule", rules().values(), ids=lambda rule: rule.code)
def test_every_rule_has_a_page_with_a_wrong_and_a_right_example(rule: Rule) -> None:
    assert re.fullmatch(r"FA[1-9]\d\d", rule.code)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.name)
    assert rule.page.count("```") % 2 == 0
    if rule.severity != "info":  # a note says that nothing is wrong
        assert re.search(r"\bwrong\b", rule.page, re.IGNORECASE)
        assert re.search(r"\bright\b", rule.page, re.IGNORECASE)


@pytest.mark.spec("CHECK-5")
def test_every_page_is_that_of_a_rule() -> None:
    assert {file.name for file in PAGES.iterdir()} == {f"{code}.md" for code in rules()}


def test_explaining_a_rule_reads_its_page_alone() -> None:
    script = """if True:
        import sys
        opened = []
        def note(event, args):
            if event == "open" and str(args[0]).endswith(".md"):
                opened.append(str(args[0]).rpartition("/")[2])
        sys.addaudithook(note)
        from fast_agent.cli.main import main
        try:
            main(["explain", "FA201"])
        except SystemExit:
            pass
        print(opened)
    """
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"{explain('FA201')}['FA201.md']\n"


def test_explain_takes_a_code_or_a_name_in_any_case() -> None:
    page = explain("FA201")
    assert page.startswith("# FA201 unknown-agent\n\n")
    assert page.endswith("```\n")
    assert explain("fa201") == explain("Unknown-Agent") == explain("unknown_agent") == page
    assert "Severity: warning." in explain("FA205")


@pytest.mark.parametrize(
    ("word", "near"), [("FA2O1", "FA201"), ("unknown-agnet", "unknown-agent"), ("FA20", "FA20")]
)
def test_an_unknown_rule_gets_a_suggestion(word: str, near: str) -> None:
    with pytest.raises(ConfigError) as raised:
        find_rule(word)
    assert raised.value.message == f"there is no rule `{word}`"
    assert near in (raised.value.hint or "")


def test_the_docs_page_has_every_rule() -> None:
    page = docs_page()
    for rule in rules().values():
        assert f"\n## {rule.code} {rule.name}\n" in page
        assert f"(#{rule.code.lower()}-{rule.name})" in page
