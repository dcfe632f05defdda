"""Effects of found test files, guides and of sets in directories that are too wide."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.trust.found_project import CARDS, CONFIG, Project

from fast_agent.trust.effects.survey import effects_of, survey

if TYPE_CHECKING:
    from pathlib import Path

TEST = f"{CARDS}/lead.test.yaml"
CASES = "cases:\n- name: one\n  message: hi\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path.resolve())


def effects(project: Project, text: str, *, records: bool = False) -> list[tuple[str, str, int]]:
    project.write(TEST, text)
    parts = replace(project.surveyed(), tests=(project.layer(TEST),), records=records)
    found = survey(parts)
    assert set(found.files) == ({TEST} if found.effects else set())
    assert {str(one.holder) for one in found.effects} <= {"test `lead.test.yaml`"}
    return [(one.kind, one.subject, one.line or 0) for one in found.effects]


@pytest.mark.spec("TR-E.test")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CASES, []),
        (f"cards: lead.md\nmodel: passthrough\nrecordings: taped\n{CASES}", []),
        (f"cards: ['.', ../tool-cards]\n{CASES}", []),
        (f"cards: [/srv/cards]\n{CASES}", [("read", "/srv/cards", 1)]),
        (f"model: local?path=w.gguf\n{CASES}", [("run", f"model file {CARDS}/w.gguf", 1)]),
        (f"model: scripted?file=/etc/passwd\n{CASES}", [("read", "/etc/passwd", 1)]),
        (f"recordings: /srv\n{CASES}", [("read", "/srv", 1)]),
        (f"{CASES}  recording: /etc/passwd\n", [("read", "/etc/passwd", 4)]),
        (f"{CASES}  recording: ../../.env\n", [("read", ".env", 4)]),
        (f"{CASES}  data: rows.jsonl\n", []),
        (f"{CASES}  data: /etc/passwd\n", [("read", "/etc/passwd", 4)]),
        (
            f"{CASES}  live: true\n  network: true\n",
            [("ease", "network: false → true", 5)],
        ),
    ],
)
def test_each_key_of_a_test_file(
    project: Project, text: str, expected: list[tuple[str, str, int]]
) -> None:
    project.write(".fast-agent/tool-cards/x.md", "")
    project.write(".env", "A=1")
    assert effects(project, text) == expected


@pytest.mark.spec("TR-E.test")
def test_recording_writes(project: Project) -> None:
    assert effects(project, CASES, records=True) == [("write", f"{CARDS}/recordings", 1)]
    project.write(TEST, f"recordings: /srv\n{CASES}")
    parts = replace(project.surveyed(), tests=(project.layer(TEST),), records=True)
    (read, write) = survey(parts).effects
    assert (read.kind, write.kind) == ("read", "write")
    assert write.refusal is not None


@pytest.mark.spec("TR-E.read")
def test_a_guide_reads_outside(project: Project) -> None:
    project.write(".guide.yaml", "docroot: ..\ncategories: {a: {dir: b}}\n")
    parts = replace(project.surveyed(), guides=(project.layer(".guide.yaml"),))
    found = survey(parts)
    up = project.root.parent
    assert [(one.kind, one.subject) for one in found.effects] == [
        ("read", str(up)),
        ("read", str(up / "b")),
    ]
    assert {one.holder.kind for one in found.effects} == {"guide"}


@pytest.mark.spec("TR-F5.1", "TR-E.read")
def test_a_wide_root_has_only_the_files_of_the_set_inside(project: Project) -> None:
    """The project lies in the home itself."""
    project.environ["HOME"] = str(project.root)
    project.write("diary.md", "dear diary")
    project.card("messages: ../../history.json\n", body="{{file:diary.md}}\n")
    assert [(one.kind, one.subject) for one in project.effects()] == [
        ("read", "history.json"),
        ("read", "diary.md"),
    ]


@pytest.mark.spec("TR-G2.2")
def test_the_effects_of_one_part_are_worked_out_again(project: Project) -> None:
    project.write("server.py", "print(1)\n")
    project.write(f"{CARDS}/tools.py", "def search(): ...\n")
    project.write(CONFIG, "mcp: {servers: {t: {command: python3, args: [server.py]}}}\n")
    project.card("function_tools: [tools.py:search]\n")
    parts = project.surveyed()
    before = survey(parts)
    for effect in before.effects:
        assert effects_of(parts, effect.holder) == (effect,)
    project.write("server.py", "print(2)\n")
    project.write(f"{CARDS}/more.py", "")
    for effect in before.effects:
        (again,) = effects_of(parts, effect.holder)
        assert again != effect
