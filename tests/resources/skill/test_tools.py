from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, cast

import pytest

from fast_agent.errors import ResourceError
from fast_agent.resources.problem import AmbiguousName, NotFound
from fast_agent.resources.provider import ToolAnswer
from fast_agent.resources.skill.methods import skill_addition
from fast_agent.resources.skill.provider import SkillOptions, SkillProvider

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.resources.provider import ServedTool


def add(root: Path, path: str, description: str = "Does it.") -> Path:
    folder = root / path
    folder.mkdir(parents=True)
    name = path.rpartition("/")[2]
    (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {description}\n---\nText.\n")
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "skills"
    folder = add(root, "code-review", "Review <b>code</b> when asked.")
    (folder / "references").mkdir()
    (folder / "references/guide.md").write_text("guide")
    (folder / "logo.png").write_bytes(b"\x89PNG\xff")
    add(root, "billing/refunds")
    add(root, "support/refunds")
    return root


def tools(root: Path, **options: Any) -> dict[str, ServedTool]:
    provider = SkillProvider([root], SkillOptions(**options), report=lambda _problem: None)
    return {tool.name: tool for tool in skill_addition(provider).tools()}


def call(tool: ServedTool, **arguments: str) -> ToolAnswer:
    try:
        return tool.call(arguments)
    except ResourceError as problem:
        return ToolAnswer.of_problem(problem)


def text(answer: ToolAnswer, index: int = 0) -> str:
    return cast("str", answer.content[index]["text"])


@pytest.mark.spec("SEED-SKILL-6", "SEED-SKILL-10")
def test_load_skill_names_the_skills_and_gives_their_text(root: Path) -> None:
    load = tools(root)["load_skill"]
    assert "- code-review: Review &lt;b&gt;code&lt;/b&gt; when asked." in load.description
    schema = cast("dict[str, Any]", load.input_schema)
    names = ["billing/refunds", "code-review", "support/refunds"]
    assert schema["properties"]["name"]["enum"] == names
    for name in names:
        answer = call(load, name=name)
        assert not answer.is_error
        assert text(answer) == (root / name / "SKILL.md").read_text()
    files = text(call(load, name="code-review"), 1)
    assert "<file>references/guide.md</file>" in files
    assert "<file>logo.png</file>" in files
    assert len(call(load, name="billing/refunds").content) == 1


@pytest.mark.parametrize(
    "name", ["code-review", "skill://code-review", "skill://code-review/SKILL.md"]
)
def test_a_skill_is_known_by_name_path_and_uri(root: Path, name: str) -> None:
    assert "name: code-review" in text(call(tools(root)["load_skill"], name=name))


def test_an_ambiguous_name_lists_the_candidates(root: Path) -> None:
    load = tools(root)["load_skill"]
    with pytest.raises(AmbiguousName) as caught:
        load.call({"name": "refunds"})
    assert caught.value.candidates == (
        "skill://billing/refunds/SKILL.md",
        "skill://support/refunds/SKILL.md",
    )
    answer = call(load, name="refunds")
    assert answer.is_error
    assert "skill://billing/refunds/SKILL.md" in text(answer)


@pytest.mark.spec("SEED-SKILL-15")
@pytest.mark.parametrize(
    "name",
    [
        "code-reviw",
        "nothing",
        "../code-review",
        "/etc/passwd",
        "skill://x/SKILL.md",
        "",
        "skill://",
    ],
)
def test_an_unknown_skill_is_reported_with_what_there_is(root: Path, name: str) -> None:
    answer = call(tools(root)["load_skill"], name=name)
    assert answer.is_error
    assert str(root) not in text(answer)
    if name == "code-reviw":
        assert "`code-review`" in text(answer)


def test_wrong_arguments_are_reported(root: Path) -> None:
    for tool in tools(root).values():
        assert tool.call({}).is_error
        assert tool.call({"name": 7, "path": []}).is_error


def test_read_skill_file(root: Path) -> None:
    read = tools(root)["read_skill_file"]
    for path in ("references/guide.md", "./references/guide.md"):
        assert text(call(read, name="code-review", path=path)) == "guide"
    uri = "skill://code-review/references/guide.md"
    assert text(call(read, name="code-review", path=uri)) == "guide"
    assert '"path":"logo.png"' in text(call(read, name="code-review", path="_manifest"))
    (block,) = call(read, name="code-review", path="logo.png").content
    resource = cast("dict[str, str]", block["resource"])
    assert base64.b64decode(resource["blob"]) == b"\x89PNG\xff"
    assert resource["mimeType"] == "image/png"


@pytest.mark.spec("SEED-SKILL-14")
@pytest.mark.parametrize(
    "path",
    ["../billing/refunds/SKILL.md", "/etc/passwd", "references", "no.md", "", "a\0b", "..\\x"],
)
def test_a_path_never_leads_out(root: Path, path: str) -> None:
    answer = call(tools(root)["read_skill_file"], name="code-review", path=path)
    assert answer.is_error
    assert str(root) not in text(answer)


def test_the_switches(root: Path) -> None:
    assert tools(root, load_skill=False) == {}
    load = tools(root, embed_catalog=False)["load_skill"]
    assert "code-review" not in load.description
    assert "code-review" not in str(load.input_schema)
    assert "name: code-review" in text(call(load, name="code-review"))


def test_tools_follow_the_disk(root: Path) -> None:
    provider = SkillProvider([root], report=lambda _problem: None)
    now = skill_addition(provider).tools
    assert now() == now()
    add(root, "late")
    provider.scan()
    assert "late" in now()[0].description
    add(root, "later")
    assert "name: later" in text(now()[0].call({"name": "later"}))


def test_without_skills_the_tool_says_so(tmp_path: Path) -> None:
    load = tools(tmp_path)["load_skill"]
    assert "no skills" in load.description
    assert "enum" not in str(load.input_schema)
    with pytest.raises(NotFound):
        load.call({"name": "any"})


def test_many_skills_are_named_without_their_descriptions(tmp_path: Path) -> None:
    for number in range(120):
        add(tmp_path, f"skill-{number}", "x" * 400)
    load = tools(tmp_path)["load_skill"]
    assert len(load.description) < 4000
    assert "skill-119" in load.description
    assert "xxx" not in load.description
