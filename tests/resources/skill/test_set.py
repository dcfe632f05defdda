from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from fast_agent.resources.resource import Limits
from fast_agent.resources.skill.files import SkillLimits
from fast_agent.resources.skill.provider import SkillOptions, SkillProvider
from fast_agent.resources.uri import Uri
from fast_agent.text.safe_file import FileBytes, read_below

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.resources.skill.files import NamePolicy
    from fast_agent.text.json_value import JsonObject


def add(root: Path, path: str, name: str | None = None, **files: str) -> Path:
    folder = root / path
    folder.mkdir(parents=True, exist_ok=True)
    name = path.rpartition("/")[2] if name is None else name
    (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Does it.\n---\n")
    for file, text in files.items():
        (folder / file).write_text(text)
    return folder


def serve(
    *roots: Path, policy: NamePolicy = "frontmatter", limits: SkillLimits | None = None
) -> tuple[SkillProvider, list[Diagnostic]]:
    problems: list[Diagnostic] = []
    options = SkillOptions(policy, limits or SkillLimits())
    return SkillProvider(roots, options, report=problems.append), problems


def paths(provider: SkillProvider) -> list[str]:
    return [skill.path for skill in provider.skills.skills]


def codes(problems: list[Diagnostic]) -> list[str]:
    return [one.code for one in problems]


def text(provider: SkillProvider, uri: str) -> str:
    return provider.read(Uri.parse(uri))[0].text or ""


def test_a_head_that_is_away_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = add(tmp_path, "one")
    head, away = folder / "SKILL.md", folder / "away"

    def read_without(*arguments: Any) -> FileBytes:
        head.rename(away)
        try:
            return read_below(*arguments)
        finally:
            away.rename(head)
            for changed in (head, folder, tmp_path):  # as if long before the look
                os.utime(changed, (1, 1))

    with monkeypatch.context() as patch:
        patch.setattr("fast_agent.resources.skill.files.read_below", read_without)
        provider, problems = serve(tmp_path)
        assert paths(provider) == []
    assert codes(problems) == ["FA751"]
    provider.scan()
    assert paths(provider) == ["one"]


def test_folders_above_a_skill_become_its_path(tmp_path: Path) -> None:
    add(tmp_path, "acme/billing/refunds")
    add(tmp_path, "Größe & mehr/refunds")
    provider, problems = serve(tmp_path)
    assert paths(provider) == ["Größe & mehr/refunds", "acme/billing/refunds"]
    assert codes(problems) == ["FA764", "FA764"]
    assert "name: refunds" in text(provider, "skill://Gr%C3%B6%C3%9Fe%20&%20mehr/refunds/SKILL.md")
    assert [one.template for one in provider.templates()] == [
        "skill://{name}/{+path}",
        "skill://{+skillFilePath}",
    ]


def test_a_root_may_be_a_skill_or_a_link_or_missing(tmp_path: Path) -> None:
    folder = add(tmp_path, "one/alone", notes="notes")
    link = tmp_path / "link"
    link.symlink_to(folder)
    late = tmp_path / "late"
    provider, problems = serve(folder, late)
    assert paths(provider) == ["alone"]
    assert text(provider, "skill://alone/notes") == "notes"
    assert codes(problems) == ["FA766"]
    assert paths(serve(link)[0]) == ["alone"]
    add(late, "later")
    assert "name: later" in text(provider, "skill://later/SKILL.md")


@pytest.mark.parametrize(
    ("policy", "served", "severity"),
    [("frontmatter", ["own"], "warning"), ("lenient", ["own"], "warning"), ("strict", [], "error")],
)
def test_a_name_that_is_not_the_folders(
    tmp_path: Path, policy: NamePolicy, served: list[str], severity: str
) -> None:
    add(tmp_path, "folder", "own")
    provider, problems = serve(tmp_path, policy=policy)
    assert paths(provider) == served
    (problem,) = problems
    assert (problem.code, problem.severity) == ("FA758", severity)
    assert problem.span is not None
    assert problem.span.start.line == 2


def test_wrong_names_are_served_where_that_is_asked(tmp_path: Path) -> None:
    add(tmp_path, "My Skill")
    add(tmp_path, "nested", "a/b")
    nameless = add(tmp_path, "nameless")
    (nameless / "SKILL.md").write_text("---\ndescription: Does it.\n---\n")
    assert paths(serve(tmp_path)[0]) == []
    provider, problems = serve(tmp_path, policy="lenient")
    assert paths(provider) == ["My Skill", "nameless"]
    assert "Does it" in text(provider, "skill://My%20Skill/SKILL.md")
    assert codes(problems).count("FA753") == 4


def test_skills_of_one_uri(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    add(first, "same", text="first")
    add(second, "same", text="second")
    add(second, "Same", "same")
    provider, problems = serve(first, second)
    assert paths(provider) == ["same"]
    assert text(provider, "skill://same/text") == "first"
    assert codes(problems) == ["FA758", "FA759", "FA759"]


def test_paths_that_differ_in_case_or_encoding_only(tmp_path: Path) -> None:
    add(tmp_path, "Acme/refunds")
    add(tmp_path, "acme/refunds")
    add(tmp_path, "caf\u00e9/menu")
    add(tmp_path, "cafe\u0301/menu")
    provider, problems = serve(tmp_path)
    assert len(paths(provider)) == 2
    assert codes(problems).count("FA759") == 2


@pytest.mark.parametrize("name", ["prompt-xml", "index.json/inner"])
def test_names_the_server_keeps(tmp_path: Path, name: str) -> None:
    add(tmp_path, name)
    provider, problems = serve(tmp_path)
    assert paths(provider) == []
    assert codes(problems) == ["FA759"]


def test_a_skill_of_another_root_is_never_inside_one(tmp_path: Path) -> None:
    first, second, third = tmp_path / "1", tmp_path / "2", tmp_path / "3"
    add(first, "acme", text="acme")
    add(second, "acme/billing")
    assert paths(serve(first, second)[0]) == ["acme"]
    assert paths(serve(second, first)[0]) == ["acme/billing"]
    add(third, "group/inner")
    add(third, "zoo", "group")
    provider, problems = serve(third)
    assert paths(provider) == ["group/inner"]
    assert codes(problems) == ["FA758", "FA759"]


def test_a_skill_inside_another_under_another_name(tmp_path: Path) -> None:
    add(tmp_path, "outer", text="outer")
    add(tmp_path, "outer/folder", "inner", text="inner")
    provider, _ = serve(tmp_path)
    assert paths(provider) == ["outer", "outer/inner"]
    assert text(provider, "skill://outer/inner/text") == "inner"
    assert text(provider, "skill://outer/folder/text") == "inner"
    assert list(provider.skills.skills[0].files) == [
        "SKILL.md",
        "folder/SKILL.md",
        "folder/text",
        "text",
    ]
    (tmp_path / "outer/inner").mkdir()
    (tmp_path / "outer/inner/text").write_text("folder")
    provider, problems = serve(tmp_path)
    assert paths(provider) == ["outer"]
    assert "FA759" in codes(problems)
    assert text(provider, "skill://outer/inner/text") == "folder"


def test_file_names_that_would_be_one(tmp_path: Path) -> None:
    add(tmp_path, "case", **{"API.md": "", "api.md": ""})
    add(tmp_path, "accent", **{"\u00e9.md": "", "e\u0301.md": ""})
    add(tmp_path, "head", **{"Skill.md": ""})
    provider, problems = serve(tmp_path)
    assert paths(provider) == []
    assert codes(problems) == ["FA760"] * 3


def test_decomposed_names_read_under_composed_uris(tmp_path: Path) -> None:
    add(tmp_path, "accent", **{"e\u0301.md": "text"})
    provider, _ = serve(tmp_path)
    for uri in (
        "skill://accent/%C3%A9.md",
        "skill://accent/e%CC%81.md",
        "skill://accent/\u00e9.md",
    ):
        assert text(provider, uri) == "text"


def test_a_real_manifest_file_wins(tmp_path: Path) -> None:
    add(tmp_path, "own", _manifest="mine")
    provider, problems = serve(tmp_path)
    assert text(provider, "skill://own/_manifest") == "mine"
    assert "skill://own/_manifest" not in provider.resources()
    assert codes(problems) == ["FA765"]
    (tmp_path / "own/_manifest").unlink()
    assert '"path":"SKILL.md"' in text(provider, "skill://own/_manifest")


@pytest.mark.parametrize(
    "limits", [SkillLimits(files=2), SkillLimits(skill_bytes=100), SkillLimits(head_bytes=20)]
)
def test_a_skill_over_a_bound_is_left_out_until_it_shrinks(
    tmp_path: Path, limits: SkillLimits
) -> None:
    folder = add(tmp_path, "fat", one="1" * 80, two="2")
    add(tmp_path, "thin")
    provider, problems = serve(tmp_path, limits=limits)
    assert "fat" not in paths(provider)
    assert {one.severity for one in problems} == {"error"}
    if limits.head_bytes == 20:
        return
    if limits.files == 2:
        (folder / "two").unlink()
    else:
        (folder / "one").write_text("1")
    provider.scan()
    assert paths(provider) == ["fat", "thin"]
    (folder / "one").write_text("1" * 80)
    (folder / "two").write_text("2")
    provider.scan()
    provider.snapshot_or_none(provider.skills.skills[0])
    provider.scan()
    assert paths(provider) == ["thin"]


def test_a_root_without_end_is_not_searched(tmp_path: Path) -> None:
    for number in range(12):
        add(tmp_path, f"skill-{number}")
    provider, problems = serve(tmp_path, limits=SkillLimits(folders=10))
    assert paths(provider) == []
    assert codes(problems) == ["FA766"]
    provider, problems = serve(tmp_path, limits=SkillLimits(core=Limits(tree_files=5)))
    assert codes(problems) == ["FA766"]


def test_folders_nested_too_deep_are_reported(tmp_path: Path) -> None:
    add(tmp_path, "a/b/c/d")
    provider, problems = serve(tmp_path, limits=SkillLimits(core=Limits(tree_depth=2)))
    assert paths(provider) == []
    assert codes(problems) == ["FA762"]


def test_paths_too_long_for_a_uri_are_left_out(tmp_path: Path) -> None:
    folder = add(tmp_path, "long")
    deep = folder.joinpath(*["ü" * 100] * 4)
    deep.mkdir(parents=True)
    (deep / "file.md").write_text("x")
    provider, _ = serve(tmp_path)
    assert list(provider.skills.skills[0].files) == ["SKILL.md"]


def test_problems_are_reported_once(tmp_path: Path) -> None:
    add(tmp_path, "folder", "own")
    provider, problems = serve(tmp_path)
    add(tmp_path, "more")
    provider.scan()
    assert len(problems) == 1


class ProjectJudge:
    """Lets every skill through; those below one directory came with a project."""

    def __init__(self, project: Path) -> None:
        self._project = str(project.resolve())

    def stamp(self) -> int:
        return 0

    def is_found(self, folder: str) -> bool:
        return folder.startswith(self._project)

    def refuses(self, folder: str, frontmatter: JsonObject | None) -> bool:
        del folder, frontmatter
        return False

    def approved_fields(self, folder: str, frontmatter: JsonObject) -> frozenset[str] | None:
        return frozenset(frontmatter) if self.is_found(folder) else None


@pytest.mark.spec("TR-F6.1b", "TR-F6.1c")
@pytest.mark.parametrize("own_first", [True, False])
def test_a_found_skill_takes_no_name_of_a_given_one(tmp_path: Path, own_first: bool) -> None:
    own, project = tmp_path / "own", tmp_path / "project"
    given = add(own, "deep/plan")
    add(project, "plan", script="theirs")
    add(project, "x/strange", "PLAN")
    add(project, "other")
    problems: list[Diagnostic] = []
    options = SkillOptions("lenient", judge=ProjectJudge(project))
    roots = (own, project) if own_first else (project, own)
    provider = SkillProvider(roots, options, report=problems.append)
    assert paths(provider) == ["deep/plan", "other"]
    assert [folder for _, folder in provider.skills.refused] == ["plan", "x/strange"]
    left_out = [one for one in problems if one.code == "FA759"]
    yours = f"your skill `plan` ({own}/deep/plan/SKILL.md) has this name"
    assert [(one.path, one.message) for one in left_out] == [
        (f"{project}/{folder}/SKILL.md", f"skill `{name}` is left out: {yours}")
        for folder, name in (("plan", "plan"), ("x/strange", "PLAN"))
    ]
    (given / "SKILL.md").unlink()
    assert provider.scan()
    assert paths(provider) == ["other", "plan", "x/PLAN"]
    (given / "SKILL.md").write_text("---\nname: plan\ndescription: Back.\n---\n")
    provider.scan()
    assert paths(provider) == ["deep/plan", "other"]


@pytest.mark.spec("TR-F6.1b")
def test_found_skills_share_names_with_each_other(tmp_path: Path) -> None:
    first, second = tmp_path / "project/a", tmp_path / "project/b"
    add(first, "x/plan")
    add(second, "plan")
    options = SkillOptions("lenient", judge=ProjectJudge(tmp_path / "project"))
    provider = SkillProvider((first, second), options, report=lambda _: None)
    assert paths(provider) == ["plan", "x/plan"]
