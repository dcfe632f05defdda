from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fast_agent.resources.problem import NotFound
from fast_agent.resources.skill.provider import SkillProvider
from fast_agent.resources.uri import Uri

if TYPE_CHECKING:
    from pathlib import Path

FILE = "skill://{name}/{+path}"
NESTED = "skill://{+skillFilePath}"


@pytest.fixture
def provider(tmp_path: Path) -> SkillProvider:
    for path in ("code-review", "coder", "acme/refunds"):
        folder = tmp_path / path
        (folder / "references").mkdir(parents=True)
        name = path.rpartition("/")[2]
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Does it.\n---\n")
        (folder / "references/why not? 100%.md").write_text("why")
    return SkillProvider([tmp_path])


@pytest.mark.spec("SEED-SKILL-20")
@pytest.mark.parametrize(
    ("template", "argument", "value", "given", "expected"),
    [
        (FILE, "name", "", {}, ["code-review", "coder"]),
        (FILE, "name", "coder", {}, ["coder"]),
        (FILE, "name", "review", {}, ["code-review"]),
        (FILE, "name", "x", {}, []),
        (
            FILE,
            "path",
            "",
            {"name": "coder"},
            ["SKILL.md", "_manifest", "references/why not%3F 100%25.md"],
        ),
        (FILE, "path", "_", {"name": "coder"}, ["_manifest"]),
        (FILE, "path", "SK", {}, ["SKILL.md"]),
        (FILE, "path", "", {"name": "nothing"}, []),
        (NESTED, "skillFilePath", "acme", {}, ["acme/refunds/SKILL.md"]),
        (NESTED, "skillFilePath", "acme/refunds/_", {}, ["acme/refunds/_manifest"]),
    ],
)
def test_completions(
    provider: SkillProvider,
    template: str,
    argument: str,
    value: str,
    given: dict[str, str],
    expected: list[str],
) -> None:
    assert list(provider.complete(template, argument, value, given)) == expected


def test_completed_values_read(provider: SkillProvider) -> None:
    for name in provider.complete(FILE, "name", "", {}):
        for path in provider.complete(FILE, "path", "", {"name": name}):
            assert provider.read(Uri.parse(f"skill://{name}/{path}"))
    for path in provider.complete(NESTED, "skillFilePath", "acme/refunds/", {}):
        assert provider.read(Uri.parse(f"skill://{path}"))


@pytest.mark.parametrize(("template", "argument"), [(FILE, "other"), ("skill://x", "name")])
def test_unknown_arguments(provider: SkillProvider, template: str, argument: str) -> None:
    with pytest.raises(NotFound):
        list(provider.complete(template, argument, "", {}))
