from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from fast_agent.cards.agent_config import AgentConfig
from fast_agent.cards.card import Card
from fast_agent.cards.document import read_markdown, read_yaml
from fast_agent.errors import ResourceError
from fast_agent.runtime.card_probes import check_instruction
from fast_agent.text.source import Source
from fast_agent.text.span import Span

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.cards.document import FileContent
    from fast_agent.diagnostics.diagnostic import Diagnostic


def card_of(reading: FileContent, path: Path) -> Card:
    (document,) = reading.documents
    fields = document.yaml.value
    assert isinstance(fields, dict)
    instruction = fields.get("instruction") or document.instruction()
    assert isinstance(instruction, str)
    config = AgentConfig(name="me", instruction=instruction, source=path)
    return Card(config, document.source.path, document)


def yaml_card(folder: Path, text: str) -> Card:
    return card_of(read_yaml(Source("me.yaml", text), multi_card=False), folder / "me.yaml")


def markdown_card(folder: Path, text: str) -> Card:
    return card_of(read_markdown(Source("me.md", text), multi_card=False), folder / "me.md")


def shown(found: tuple[Diagnostic, ...]) -> list[tuple[str, str, int, int]]:
    rows: list[tuple[str, str, int, int]] = []
    for item in found:
        assert item.span is not None
        rows.append((item.code, item.message, item.span.start.line, item.span.start.column))
    return rows


def test_a_good_instruction(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("a")
    text = (
        "---\ntype: agent\n---\n{{currentDate}} {{file:a.md}} {{file_silent:b.md}} {x} {{ 1 }}\n"
        "\\{{user}} {{url:https://x.y}} {{agentSkills}}\n"
    )
    assert check_instruction(markdown_card(tmp_path, text), workspace=tmp_path) == ()


@pytest.mark.spec("PLACE-5")
def test_unknown_placeholders(tmp_path: Path) -> None:
    text = (
        "---\ntype: agent\n---\nHi {{current_date}}.\n"
        "{{user}} {{ env }} {{File:a.md}}\n{{file}} {{user}}\n"
    )
    found = check_instruction(markdown_card(tmp_path, text), workspace=tmp_path)
    assert {item.severity for item in found} == {"warning"}
    assert shown(found) == [
        ("FA701", "`{{current_date}}` is not a placeholder", 4, 4),
        ("FA701", "`{{user}}` is not a placeholder", 5, 1),
        ("FA701", "`{{ env }}` is not a placeholder", 5, 10),
        ("FA701", "`{{File:a.md}}` is not a placeholder", 5, 20),
        ("FA701", "`{{file}}` does not say which one", 6, 1),
        ("FA701", "`{{user}}` is not a placeholder", 6, 10),
    ]
    assert [item.hint for item in found[:5]] == [
        "did you mean `{{currentDate}}`?",
        "write `\\{{user}}` to send the model the braces themselves",
        "did you mean `{{env}}`?",
        "did you mean `{{file:a.md}}`?",
        "write what it names after a colon: `{{file:…}}`",
    ]
    assert [item.fix.replacement if item.fix else None for item in found[:5]] == [
        "{{currentDate}}",
        None,
        "{{env}}",
        "{{file:a.md}}",
        None,
    ]
    first = found[0]
    assert first.source_line == "Hi {{current_date}}."
    assert first.span == Span.at(4, 4, 16)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("instruction: |\n  one\n    two {{dte}}\n", 3, 9),
        ("instruction: >\n  one\n  two {{dte}} three\n", 3, 7),
        ('instruction: "{{dte}}"\n', 1, 15),
        ("instruction: 'it''s {{dte}}'\n", 1, 21),
        ('name: "{{dte}}"\ninstruction: "a\\n{{dte}}"\n', 2, 18),
        ("instruction: |\n  \\{{dte}} and {{dte}}\n", 2, 16),
    ],
)
def test_places_in_yaml(tmp_path: Path, text: str, line: int, column: int) -> None:
    card = yaml_card(tmp_path, text)
    found = check_instruction(card, workspace=tmp_path)
    assert len(found) == 1
    assert found[0].span == Span.at(line, column, 7)
    assert text.split("\n")[line - 1][column - 1 :].startswith("{{dte}}")


def test_where_the_text_cannot_be_found_the_field_is_shown(tmp_path: Path) -> None:
    card = yaml_card(tmp_path, 'instruction: "{{d\\u0074e}}"\n')
    (found,) = check_instruction(card, workspace=tmp_path)
    assert found.message == "`{{dte}}` is not a placeholder"
    assert found.span == card.span_of("instruction")
    assert found.fix is None


def test_files(tmp_path: Path) -> None:
    (tmp_path / "link.md").symlink_to("/etc/hostname")
    (tmp_path / "bad.md").write_bytes(b"\xe9")
    text = (
        "---\n---\n{{file:no.md}}\n{{file_silent:no.md}}\n{{file:../x}} {{file_silent:/x}}\n"
        "{{file:link.md}}\n{{file:bad.md}}\n"
    )
    found = check_instruction(markdown_card(tmp_path, text), workspace=tmp_path)
    assert {(item.code, item.severity) for item in found} == {("FA702", "error")}
    assert [(row[1].split("` ", 1)[1], row[2], row[3]) for row in shown(found)] == [
        ("does not exist", 3, 1),
        ("leads out of its directory with `..`", 5, 1),
        ("is an absolute path", 5, 15),
        ("goes through the link `link.md`", 6, 1),
        (found[-1].message.split("` ", 1)[1], 7, 1),
    ]
    assert "cannot be used: the file is not UTF-8 text" in found[-1].message


def test_files_of_a_remote_card_are_the_validators_to_refuse(tmp_path: Path) -> None:
    card = markdown_card(tmp_path, "---\n---\n{{file:a.md}} {{dte}}\n")
    config = replace(card.config, source=None, remote="https://x.y/me.md")
    (found,) = check_instruction(replace(card, config=config), workspace=tmp_path)
    assert found.code == "FA701"


def test_a_card_made_in_python(tmp_path: Path) -> None:
    card = Card(AgentConfig(name="me", instruction="{{dte}}"))
    (found,) = check_instruction(card, workspace=tmp_path)
    assert (found.code, found.span, found.fix, found.path) == ("FA701", None, None, "")


def test_places_after_a_system_marker_and_blank_lines(tmp_path: Path) -> None:
    text = "---\nname: '{{dte}}'\n---\n\n---SYSTEM\n\none\n\n {{dte}}\n"
    (found,) = check_instruction(markdown_card(tmp_path, text), workspace=tmp_path)
    assert found.span == Span.at(9, 2, 7)


def test_sources(tmp_path: Path) -> None:
    card = markdown_card(tmp_path, "---\n---\n{{url:ftp://x}} {{internal:a}} {{internal:b}}\n")

    def internal(name: str) -> str:
        if name == "b":
            raise ResourceError("there is no internal document `b`", hint="did you mean `a`?")
        return "text"

    found = check_instruction(card, workspace=tmp_path)
    assert shown(found) == [
        ("FA703", "`{{url:ftp://x}}` is not an `http` or `https` address", 3, 1),
        ("FA703", "there is no document for `{{internal:a}}`", 3, 17),
        ("FA703", "there is no document for `{{internal:b}}`", 3, 32),
    ]
    found = check_instruction(card, workspace=tmp_path, internal=internal)
    assert [(item.message, item.hint) for item in found[1:]] == [
        ("there is no internal document `b`", "did you mean `a`?")
    ]


def test_no_instruction_no_problem(tmp_path: Path) -> None:
    card = markdown_card(tmp_path, "---\n---\n{{user}}\n")
    empty = replace(card, config=AgentConfig(name="chain", type="chain"))
    assert check_instruction(empty, workspace=tmp_path) == ()


@pytest.mark.spec("SEARCH-4")
def test_documents_that_cannot_be_read_are_a_warning(tmp_path: Path) -> None:
    text = "---\ntype: agent\n---\nHi. {{agentInternalResources}}\n"
    card = markdown_card(tmp_path, text)
    (found,) = check_instruction(card, workspace=tmp_path)
    assert (found.code, found.severity) == ("FA704", "warning")
    for config in (
        replace(card.config, resource_tools=True),
        replace(card.config, type="smart"),
    ):
        assert check_instruction(replace(card, config=config), workspace=tmp_path) == ()
