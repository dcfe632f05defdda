from __future__ import annotations

import gc
import math
import os
import time
from typing import TYPE_CHECKING

import pytest

from fast_agent.cards.card_files import list_directory
from fast_agent.cards.load import CardLoad, FetchedText, load_cards, with_variables
from fast_agent.errors import CardError, ResourceError
from fast_agent.text.environment import VariableNames
from fast_agent.trust.grant import Grant

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CARD = "---\ntype: agent\n---\nHi\n"


@pytest.fixture
def cards(tmp_path: Path) -> Path:
    directory = tmp_path / "cards"
    directory.mkdir()
    return directory


def write(directory: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        data = content if isinstance(content, bytes) else content.encode()
        (directory / name).write_bytes(data)


def names(load: CardLoad) -> list[str]:
    return [card.config.name for card in load.cards]


def codes(load: CardLoad) -> list[tuple[str, str]]:
    return [(found.path, found.code) for found in load.diagnostics]


def load(directory: Path, *paths: str, multi_card: bool = False) -> CardLoad:
    return load_cards(paths, environ={}, cwd=directory, multi_card=multi_card)


@pytest.mark.spec("CARD-3", "CARD-12", "CARD-18", "CARD-35", "FILE-1", "FILE-9")
def test_a_directory_gives_its_cards_sorted_by_name(cards: Path) -> None:
    write(
        cards,
        {
            "b.md": CARD,
            "a.YAML": "instruction: Hi\n",
            "C.markdown": CARD,
            "é.yml": "name: z\ninstruction: Hi",
        },
    )
    (cards / "below").mkdir()
    (cards / "below.md").mkdir()
    write(cards / "below", {"d.md": CARD})
    write(cards, {".hidden.md": "broken", "note.txt": "x", "tool.py": "x"})
    found = load(cards.parent, "cards")
    assert names(found) == ["C", "a", "b", "z"]
    assert [card.path for card in found.cards][1] == "cards/a.YAML"
    assert found.cards[1].config.source == cards / "a.YAML"
    assert found.diagnostics == ()


@pytest.mark.spec("FILE-5", "FILE-7", "FILE-8")
def test_what_is_no_card_is_passed_over(cards: Path) -> None:
    write(
        cards,
        {
            "README.md": "# Cards\n---\n",
            "SKILL.md": "---\nname: x\ndescription: y\n---\n",
            "docs.yaml": "title: x\npages: [1]\n",
            "list.yaml": "- name: x\n",
            "broken.yaml": "a: [1\n  b: 'x\n",
            "stream.yaml": "a: 1\n---\nb: 2\n",
            "nested.yml": "metadata:\n  name: x\n",
            "empty.md": "",
            "empty.yaml": "",
            "a.md": CARD,
        },
    )
    found = load(cards, ".")
    assert names(found) == ["a"]
    assert not found.failed
    assert {one.code for one in found.diagnostics} == {"FA136"}
    assert [one.path for one in found.skipped] == [
        f"./{name}"
        for name in (
            *("README.md", "SKILL.md", "broken.yaml", "docs.yaml", "empty.md", "empty.yaml"),
            *("list.yaml", "nested.yml", "stream.yaml"),
        )
    ]


@pytest.mark.spec("FILE-8")
@pytest.mark.parametrize(
    "name",
    ["fastagent.config.yaml", "fast-agent.yaml", "fastagent.secrets.yaml", "Team.Secrets.YML"],
)
def test_configuration_is_never_a_card(cards: Path, name: str) -> None:
    write(cards, {name: "name: x\ninstruction: key\n"})
    assert load(cards, ".").cards == ()
    assert codes(load(cards, name)) == [(name, "FA134")]


@pytest.mark.spec("FILE-2", "FILE-4", "FILE-6")
@pytest.mark.parametrize(
    ("content", "code", "line"),
    [
        ("---\ntype: agent\nHi\n", "FA112", 1),
        ("+++\ntype = 'agent'\n+++\nHi\n", "FA113", 1),
        ("--- \ntype: agent\n---\nHi\n", "FA114", 1),
        ("---\n- type: agent\n---\nHi\n", "FA115", 2),
        ("---\njust text\n---\nHi\n", "FA115", 2),
        ("---\ntype: a: b\n---\nHi\n", "FA110", 2),
        (CARD.encode("utf-16"), "FA118", 1),
        (b"---\nname: \xe9\n---\nHi\n", "FA118", 2),
    ],
)
def test_a_broken_card_in_a_directory_is_an_error(
    cards: Path, content: str | bytes, code: str, line: int
) -> None:
    write(cards, {"a.md": content, "b.md": CARD})
    found = load(cards, ".")
    assert codes(found) == [("./a.md", code)]
    assert found.diagnostics[0].span is not None
    assert found.diagnostics[0].span.start.line == line
    assert names(found) == ["b"]
    assert found.unread == ("a",)


def test_the_name_of_an_unreadable_card_is_remembered(cards: Path) -> None:
    write(cards, {"a.md": "---\nname: writer\nmodel: [x\n---\nHi\n"})
    assert load(cards, ".").unread == ("writer",)


@pytest.mark.spec("FILE-16")
def test_duplicate_keys_do_not_hide_other_problems(cards: Path) -> None:
    write(cards, {"a.yaml": "name: x\nmodel: 3\nname: y\ninstruction: Hi\n"})
    found = load(cards, "a.yaml")
    assert [one.code for one in found.diagnostics] == ["FA111", "FA102"]
    assert not found.cards[0].sound
    assert found.diagnostics[0].related[0].span is not None
    assert found.diagnostics[0].related[0].span.start.line == 1


@pytest.mark.spec("FILE-1", "FILE-5", "FILE-7")
def test_named_files(cards: Path) -> None:
    write(
        cards,
        {
            "plain.md": "Hi\n",
            "late.md": "\n---\ntype: agent\n---\nHi\n",
            "SKILL.md": CARD,
            "card.txt": CARD,
            "docs.yaml": "title: x\n",
            "writer.md": CARD,
        },
    )
    found = load(cards, "plain.md", "late.md", "SKILL.md", "card.txt", "docs.yaml", "writr.md")
    assert codes(found) == [
        ("plain.md", "FA116"),
        ("late.md", "FA116"),
        ("SKILL.md", "FA134"),
        ("card.txt", "FA134"),
        ("docs.yaml", "FA101"),
        ("docs.yaml", "FA105"),
        ("writr.md", "FA131"),
    ]
    assert found.diagnostics[1].hint == "the `---` on line 2 must be the first line"
    assert found.diagnostics[-1].hint == "did you mean `writer.md`?"
    assert found.skipped == ()


def test_a_missing_directory_suggests_one(cards: Path) -> None:
    (found,) = load(cards.parent, "crads").diagnostics
    assert (found.code, found.hint) == ("FA131", "did you mean `cards`?")


@pytest.mark.spec("FILE-18", "FILE-19")
def test_a_directory_without_a_card_is_an_error_unless_it_is_optional(cards: Path) -> None:
    found = load(cards, ".")
    assert codes(found) == [(".", "FA137")]
    assert found.failed
    lenient = load_cards(["."], environ={}, cwd=cards, optional=["."])
    assert [one.severity for one in lenient.diagnostics] == ["info"]
    write(cards, {"README.md": "# Cards\n"})
    lenient = load_cards(["."], environ={}, cwd=cards, optional=["."])
    assert [one.severity for one in lenient.diagnostics] == ["warning"]
    assert [one.path for one in lenient.skipped] == ["./README.md"]


@pytest.mark.spec("FILE-18")
@pytest.mark.parametrize("paths", [("a.md", "."), (".", "a.md"), (".", "../cards")])
def test_a_file_that_another_path_brought_counts_for_its_directory(
    cards: Path, paths: tuple[str, ...]
) -> None:
    write(cards, {"a.md": CARD})
    found = load(cards, *paths)
    assert names(found) == ["a"]
    assert found.diagnostics == ()


@pytest.mark.spec("FILE-18")
@pytest.mark.parametrize("name", ["a.md", "a.yaml"])
def test_a_directory_whose_cards_are_wrong_holds_cards(cards: Path, name: str) -> None:
    write(cards, {name: "---\ntype: [\n---\n"})
    assert "FA137" not in {code for _, code in codes(load(cards, "."))}


@pytest.mark.spec("FILE-18")
def test_an_error_names_what_was_passed_over_within_bounds(cards: Path) -> None:
    write(cards, {f"{number:02}.txt": "x" for number in range(20)})
    write(cards, {".hidden.md": CARD, "fastagent.config.yaml": "", "a.test.yaml": ""})
    for place in ("node_modules", ".git", "notes", "deep/er", ".fast-agent/agent-cards"):
        (cards / place).mkdir(parents=True)
        write(cards / place, {"x.md": "# No card\n" if place == "notes" else CARD})
    (cards / "link").symlink_to(cards / "deep")
    os.mkfifo(cards / "notes" / "pipe.md")
    (problem,) = load(cards.parent, "cards").diagnostics
    assert [one.path for one in problem.related] == [
        *("cards/.fast-agent/agent-cards", "cards/deep/er"),
        *(f"cards/{number:02}.txt" for number in range(6)),
        "cards",
    ]
    assert problem.related[-1].message == "skipped: 16 more"
    assert problem.hint == ("name the directory the cards are in: `cards/.fast-agent/agent-cards`")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("# Head\n---\ntype: agent\n---\n", 2),
        ("\n---\nname: a\n---\nHi", 2),
        ("# Head\n\ntext\n---\na: 1\n---\ninstruction: x\n---", 6),
        ("# Head\n---\ntype: agent\n", None),
        ("# Head\n---\ntext\n---\n", None),
        ("# Head\n ---\ntype: agent\n ---\n", None),
        ("", None),
    ],
)
def test_frontmatter_below_the_first_line_is_found(
    cards: Path, text: str, line: int | None
) -> None:
    write(cards, {"a.md": text})
    (named,) = load(cards, "a.md").diagnostics
    assert named.code == "FA116"
    late = f"the `---` on line {line} must be the first line"
    assert (named.hint == late) is (line is not None)
    (listed,) = load(cards, ".").diagnostics
    assert (f"on line {line}," in listed.related[0].message) is (line is not None)


def test_odd_files_are_errors_and_never_hang(cards: Path) -> None:
    os.mkfifo(cards / "pipe.md")
    (cards / "link.md").symlink_to("nowhere.md")
    (cards / "loop.md").symlink_to("loop.md")
    write(cards, {"large.md": CARD + "x" * 1024 * 1024, "b.md": CARD})
    (cards / "good.md").symlink_to("b.md")
    found = load(cards, ".")
    assert codes(found) == [
        ("./large.md", "FA133"),
        ("./link.md", "FA131"),
        ("./loop.md", "FA132"),
        ("./pipe.md", "FA132"),
    ]
    assert names(found) == ["b", "good"]
    assert codes(load(cards, "pipe.md")) == [("pipe.md", "FA132")]


@pytest.mark.skipif(os.geteuid() == 0, reason="permissions do not hold back root")
def test_a_file_without_permission(cards: Path) -> None:
    write(cards, {"a.md": CARD})
    (cards / "a.md").chmod(0)
    assert codes(load(cards, ".")) == [("./a.md", "FA132")]


@pytest.mark.spec("FILE-10")
def test_a_file_reached_twice_is_loaded_once(cards: Path) -> None:
    write(cards, {"a.md": CARD, "b.md": CARD})
    found = load(cards, "b.md", ".", str(cards / "a.md"), "../cards/b.md")
    assert names(found) == ["b", "a"]


@pytest.mark.spec("CARDS-2")
def test_problems_of_all_files_at_once(cards: Path) -> None:
    write(cards, {"a.md": "---\nmodel: 3\n---\nHi\n", "b.md": "---\n", "c.yaml": "type: agent\n"})
    found = load(cards, ".", "nothing.md")
    assert [code for _, code in codes(found)] == ["FA102", "FA112", "FA105", "FA131"]
    assert found.failed
    with pytest.raises(CardError, match="4 errors in cards") as caught:
        found.raise_errors()
    assert caught.value.diagnostics == found.diagnostics


def test_sound_cards_raise_nothing(cards: Path) -> None:
    write(cards, {"a.md": CARD, "README.md": "Hi"})
    load(cards, ".").raise_errors()


YAML_STREAM = "name: a\ninstruction: Hi\n---\n# second\nname: b\ninstruction: Ho\nmodel: 3\n"
MARKDOWN_STREAM = """\
---
type: agent
name: a
---
First.

---

Still the first.
---
note: no card, it has no type
---
```
---
type: agent
name: example
---
```
---
type: agent
name: b
model: 3
---

---SYSTEM
Second.
---
type: chain
name: c
sequence: [a]
---
"""


@pytest.mark.spec("CARD-4", "FILE-11")
@pytest.mark.parametrize(
    ("name", "text", "line"), [("x.yaml", YAML_STREAM, 3), ("x.md", MARKDOWN_STREAM, 19)]
)
def test_several_cards_are_an_error_unless_asked_for(
    cards: Path, name: str, text: str, line: int
) -> None:
    write(cards, {name: text})
    found = load(cards, ".")
    assert codes(found) == [(f"./{name}", "FA117")]
    assert "`--multi-card`" in str(found.diagnostics[0].hint)
    assert found.diagnostics[0].span is not None
    assert found.diagnostics[0].span.start.line == line
    assert names(found) == ["a"]


def test_a_yaml_stream_of_cards(cards: Path) -> None:
    write(cards, {"x.yaml": YAML_STREAM})
    found = load(cards, ".", multi_card=True)
    assert names(found) == ["a", "b"]
    (problem,) = found.diagnostics
    assert problem.span is not None
    assert (problem.code, problem.span.start.line, problem.source_line) == ("FA102", 7, "model: 3")


@pytest.mark.spec("FILE-12")
def test_a_markdown_file_of_cards(cards: Path) -> None:
    write(cards, {"x.md": MARKDOWN_STREAM})
    found = load(cards, ".", multi_card=True)
    assert names(found) == ["a", "b", "c"]
    first, second, third = (card.config for card in found.cards)
    assert first.instruction is not None
    assert first.instruction.startswith("First.\n\n---\n\nStill")
    assert first.instruction.endswith("name: example\n---\n```")
    assert (second.instruction, third.instruction) == ("Second.", None)
    (problem,) = found.diagnostics
    assert problem.span is not None
    assert (problem.span.start.line, problem.source_line) == (22, "model: 3")


def test_a_problem_in_a_later_body_is_placed(cards: Path) -> None:
    write(
        cards,
        {
            "x.md": "---\nname: a\ntype: agent\n---\nFirst.\n"
            "---\nname: b\ntype: agent\n---\nSecond.\n---USER\nHi\n"
        },
    )
    (problem,) = load(cards, ".", multi_card=True).diagnostics
    assert problem.span is not None
    assert (problem.span.start.line, problem.source_line) == (11, "---USER")


@pytest.mark.spec("CARD-19")
def test_every_card_of_several_needs_a_name(cards: Path) -> None:
    write(cards, {"x.yaml": "instruction: a\n---\ninstruction: b\n", "y.yaml": "instruction: c\n"})
    found = load(cards, ".", multi_card=True)
    assert codes(found) == [("./x.yaml", "FA104")] * 2
    assert names(found) == ["x-1", "x-2", "y"]


@pytest.mark.parametrize(
    "text",
    [
        "---\nname: a\ninstruction: Hi\n",
        "# c\n---\nname: a\ninstruction: Hi\n---\n",
        "%YAML 1.2\n---\nname: a\ninstruction: Hi\n",
    ],
)
def test_one_document_is_one_card(cards: Path, text: str) -> None:
    write(cards, {"x.yaml": text})
    found = load(cards, ".")
    assert found.diagnostics == ()
    assert names(found) == ["a"]


def test_duplicate_keys_in_a_later_card_are_not_taken_for_text(cards: Path) -> None:
    write(
        cards,
        {
            "x.md": CARD.replace("agent", "agent\nname: a")
            + "---\ntype: agent\ntype: agent\nname: b\n---\nHo\n"
        },
    )
    found = load(cards, ".", multi_card=True)
    assert names(found) == ["a", "b"]
    assert [code for _, code in codes(found)] == ["FA111"]


def test_values_of_variables_come_later_without_another_look_at_the_file(cards: Path) -> None:
    write(cards, {"a.md": CARD.replace("agent", "agent\nmodel: ${M}"), "b.md": CARD})
    found = load_cards(["."], environ=VariableNames({"M": "gpt"}), cwd=cards)
    assert found.diagnostics == ()
    write(cards, {"a.md": "", "b.md": ""})
    a, b = (with_variables(one, {"M": "gpt"}, multi_card=False) for one in found.files)
    assert (a.cards[0].config.model, a.cards[0].config.name) == ("gpt", "a")
    assert (b, b.cards[0].config.model) == (found.files[1], None)


def test_candidates_are_files_of_a_directory(cards: Path) -> None:
    write(cards, {"a.md": CARD, "README.md": "Hi"})
    found = load_cards(list_directory(str(cards), "cards"), environ={})
    assert names(found) == ["a"]
    assert found.cards[0].path == "cards/a.md"
    assert [one.path for one in found.skipped] == ["cards/README.md"]


ADDRESS = "https://example.com/team/Chief%20writer.md?v=2#x"


def test_a_remote_card() -> None:
    asked: list[str] = []

    def fetch(address: str) -> FetchedText:
        asked.append(address)
        return FetchedText(address, "\ufeff---\r\nmodel: ${A}\r\n---\r\nHi\r\n")

    found = load_cards([ADDRESS, ADDRESS], environ={"A": "b"}, fetch=fetch)
    assert asked == [ADDRESS]
    (card,) = found.cards
    assert found.diagnostics == ()
    assert (card.config.name, card.config.model) == ("Chief writer", "${A}")
    assert (card.path, card.config.remote, card.config.source) == (ADDRESS, ADDRESS, None)


@pytest.mark.spec("FILE-13")
def test_remote_cards_that_cannot_be_loaded() -> None:
    def fetch(address: str) -> FetchedText:
        if "large" in address:
            return FetchedText(address, "x" * (1024 * 1024 + 1))
        raise ResourceError("the server answered 404", hint="check the address")

    paths = ["http://a/b.md", "http://a/large.md", "ftp://a/b.md", "file:///etc/b.md", "http://a/b"]
    found = load_cards(paths, environ={}, fetch=fetch)
    assert codes(found) == list(
        zip(paths, ["FA135", "FA133", "FA135", "FA135", "FA134"], strict=True)
    )
    assert found.diagnostics[0].message == "the server answered 404"
    assert codes(load_cards(["http://a/b.md"], environ={})) == [("http://a/b.md", "FA135")]


def test_a_thousand_cards_take_little_time(cards: Path) -> None:
    for number in range(1000):
        front = (
            f"type: agent\nname: agent_{number}\nservers: [time, git]\ntools:\n  time: [get_*]\n"
        )
        write(cards, {f"{number:04}.md": f"---\n{front}---\nYou are agent {number}.\n"})
    best = math.inf
    for _ in range(3):
        gc.collect()
        started = time.process_time()
        count = len(load(cards, ".").cards)
        best = min(best, time.process_time() - started)
        assert count == 1000
    # 0.08 s on an idle machine; the limit leaves room for a slow and busy one.
    assert best < 8


def test_a_link_of_a_found_set_leads_nowhere_else(cards: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("---\nname: secret\n---\nHi.\n")
    write(cards, {"own.md": "---\nname: own\n---\nHi.\n"})
    (cards / "link.md").symlink_to(tmp_path / "secret.md")
    found = load_cards([cards], cwd=cards.parent, grant=Grant(cards.resolve()))
    assert names(found) == ["own"]
    (warning,) = found.diagnostics
    assert warning.path.endswith("cards/link.md")
    assert "leads out of" in warning.message
    named = load_cards([cards], cwd=cards.parent)
    assert sorted(names(named)) == ["own", "secret"]
