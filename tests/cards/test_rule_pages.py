"""The pages of FA1xx: the loader reports their wrong example, and not their right one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from fast_agent.cards.load import FetchedText, load_cards
from fast_agent.diagnostics.rulebook import rules

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.diagnostics.rules import Rule

EXAMPLE = re.compile(r"^```(yaml|markdown)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEEDS_INSTRUCTION = "instruction: Answer in one line.\n"
ALL = [rule for rule in rules().values() if rule.startswith("FA1")]
RULES = [rule for rule in ALL if len(EXAMPLE.findall(rule.page)) == 2]


def codes(directory: Path, block: tuple[str, str], rule: Rule) -> set[str]:
    language, example = block
    name = "card.yaml" if language == "yaml" else "card.md"
    text = example.replace("·", " ")
    if language == "yaml" and "instruction" not in text and rule.severity != "info":
        text += "" if text.startswith("-") else NEEDS_INSTRUCTION
    if rule.code == "FA125":
        address = f"https://example.com/{name}"
        load = load_cards([address], environ={}, fetch=lambda _: FetchedText(address, text))
    else:
        (directory / name).write_text(text)
        (directory / "beside.md").write_text("---\ntype: agent\n---\nHi\n")
        path = directory if rule.severity == "info" else directory / name
        load = load_cards([path], environ={})
    return {found.code for found in load.diagnostics}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_examples(tmp_path: Path, rule: Rule) -> None:
    wrong, right = EXAMPLE.findall(rule.page)
    assert rule.code in codes(tmp_path, wrong, rule)
    assert rule.code not in codes(tmp_path, right, rule)


def test_most_pages_have_examples_to_try() -> None:
    assert len(RULES) > 20


def test_codes_do_not_move() -> None:
    """They are in people's notes and configurations: a code keeps its meaning."""
    named = {rule.code: rule.name for rule in ALL}
    assert named == {
        "FA101": "unknown-field",
        "FA102": "wrong-type",
        "FA103": "bad-value",
        "FA104": "missing-field",
        "FA105": "missing-instruction",
        "FA106": "two-instructions",
        "FA107": "unknown-type",
        "FA108": "bad-name",
        "FA109": "newer-schema",
        "FA110": "bad-yaml",
        "FA111": "duplicate-key",
        "FA112": "unclosed-frontmatter",
        "FA113": "toml-frontmatter",
        "FA114": "loose-fence",
        "FA115": "not-a-mapping",
        "FA116": "no-frontmatter",
        "FA117": "several-cards",
        "FA118": "encoding",
        "FA121": "history-in-body",
        "FA122": "unset-variable",
        "FA123": "deprecated-history-mode",
        "FA124": "history-mode-conflict",
        "FA125": "forbidden-on-remote",
        "FA131": "missing-file",
        "FA132": "unreadable-file",
        "FA133": "file-too-large",
        "FA134": "not-a-card-file",
        "FA135": "remote-failed",
        "FA136": "skipped-file",
        "FA137": "no-cards",
    }
