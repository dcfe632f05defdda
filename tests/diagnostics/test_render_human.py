from __future__ import annotations

import re

import pytest

from fast_agent.diagnostics.card_fact import CardFact
from fast_agent.diagnostics.diagnostic import Diagnostic, Fix, Related
from fast_agent.diagnostics.render_human import render_cards, render_human, summarize
from fast_agent.text.span import Span

TYPO = Diagnostic(
    "FA101",
    "`agent` has no field `modle`",
    "cards/a.md",
    Span.at(3, 1, 5),
    hint="did you mean `model`?",
    fix=Fix(Span.at(3, 1, 5), "model"),
    source_line="modle: gpt",
)


@pytest.mark.spec("CARDS-4")
def test_one_problem() -> None:
    assert render_human([TYPO]) == (
        "error[FA101]: `agent` has no field `modle`\n"
        "  --> cards/a.md:3:1\n"
        "3 | modle: gpt\n"
        "  | ^^^^^\n"
        "hint: did you mean `model`?\n"
        "\n"
        "1 error (1 can be mended with `--fix`)\n"
    )


def test_nothing_is_nothing() -> None:
    assert render_human([]) == ""
    assert summarize([]) == "no problems"


def test_related_places_and_several_severities() -> None:
    twice = Diagnostic(
        "FA204",
        "two cards are called `a`",
        "b.md",
        Span.at(10, 7, 1),
        related=(Related("the first is here", "a.md", Span.at(2, 7, 1)),),
        source_line="name: a",
    )
    whole = Diagnostic("FA9", "skipped", "docs.yaml", severity="info")
    nowhere = Diagnostic("FA8", "odd", "", severity="warning", hint="first line\nsecond line")
    text = render_human([twice, nowhere, whole])
    assert "note: the first is here\n  --> a.md:2:7\n" in text
    assert "10 | name: a\n   |       ^\n" in text
    assert "warning[FA8]: odd\nhint: first line\n      second line\n" in text
    assert "info[FA9]: skipped\n  --> docs.yaml\n" in text
    assert text.endswith("\n\n1 error, 1 warning, 1 note\n")
    assert "1 error" not in render_human([twice], summary=False)


def test_untrusted_text_cannot_reach_the_terminal() -> None:
    evil = Diagnostic(
        "FA101",
        "no field `\x1b]0;owned\x07`\nerror[FA999]: faked",
        "a\x1b[2J.md",
        Span.at(1, 1, 4),
        hint="x\x1b[0m\u202e",
        source_line="\x1b[31mred\u202e: 1",
        related=(Related("\x1b[1m", "b\r.md"),),
    )
    text = render_human([evil])
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\r" not in text
    assert "\nerror[FA999]" not in text


def test_colour_adds_only_escapes() -> None:
    painted = render_human([TYPO], color=True)
    assert "\x1b[1;31merror[FA101]\x1b[0m" in painted
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == render_human([TYPO])


def test_cards_are_a_table() -> None:
    facts = [
        CardFact("名前", "agent", "a.md", default=True, tool_only=False),
        CardFact("bb", "MAKER", "cards/b.md", default=False, tool_only=True),
        CardFact("c", "chain", "c.yaml", default=False, tool_only=False),
    ]
    assert render_cards(facts) == (
        "名前  agent  a.md        default\n"
        "bb    MAKER  cards/b.md  tool only\n"
        "c     chain  c.yaml\n"
    )
