from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from fast_agent.agents.runtime_options import RuntimeOptions
from fast_agent.cards.agent_config import AgentConfig
from fast_agent.cards.card import Card
from fast_agent.cards.load_set import LoadSet
from fast_agent.config.settings import Settings
from fast_agent.messages.message import ToolCall
from fast_agent.runtime.runtime import Runtime
from fast_agent.tools.allowed_calls import MAX_PATTERNS, MAX_TURNS, SkillPermits, read_patterns

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.text.json_value import JsonValue
    from fast_agent.tools.permission import PermissionRequest
    from fast_agent.tools.tool import ToolContext


@pytest.mark.parametrize(
    ("value", "patterns"),
    [
        (None, ()),
        (7, ()),
        ({"Bash": "*"}, ()),
        ("", ()),
        ("execute", (("execute", None),)),
        ("Bash", (("execute", None),)),
        ("Bash(*)", (("execute", None),)),
        ("Bash(git:*), Edit", (("execute", "git:*"), ("edit_file", None))),
        ("Bash(npm run test)", (("execute", "npm run test"),)),
        (["Read", 3, "Write"], (("read_text_file", None), *read_patterns("Write"))),
        ("Bash(git:* Edit", ()),  # an unclosed pattern names nothing
        ("git) Bash", ()),
        ("*", (("*", None),)),
    ],
)
def test_patterns(value: JsonValue, patterns: object) -> None:
    assert read_patterns(value) == patterns


def test_patterns_are_bounded() -> None:
    assert len(read_patterns("a " * (MAX_PATTERNS + 1))) == MAX_PATTERNS


@pytest.mark.parametrize(
    ("allowed", "command", "allows"),
    [
        ("Bash", "rm -r x; ls", True),
        ("Bash(git:*)", "git", True),
        ("Bash(git:*)", "git log -1", True),
        ("Bash(git *)", " git log", True),
        ("Bash(git:*)", "gitk", False),
        ("Bash(git:*)", "rm x", False),
        ("Bash(make test)", "make test", True),
        ("Bash(make test)", "make test now", False),
        ("Bash(m*)", "make", False),  # only whole words
        ("Bash( *)", "rm x", False),
        ("Bash(git:*)", "git log; rm x", False),
        ("Bash(git:*)", "git log\nrm x", False),
        ("Bash(git:*)", "git log && rm x", False),
        ("Bash(git:*)", "git log | sh", False),
        ("Bash(git:*)", "git $(rm x)", False),
        ("Bash(git:*)", "git `rm x`", False),
        ("Bash(git:*)", "git log > x", False),
        ("Edit(x.py)", "x.py", False),
        ("*", "ls", False),
        ("Read", "ls", False),
    ],
)
def test_commands(context: ToolContext, allowed: str, command: str, *, allows: bool) -> None:
    permits = SkillPermits()
    permits.add(context.turn_id, allowed)
    call = ToolCall("c", "execute", {"command": command})
    assert permits.allows(call, context) is allows
    assert not permits.allows(call, replace(context, turn_id="t2"))


def test_a_pattern_of_arguments_allows_no_other_tool(context: ToolContext) -> None:
    permits = SkillPermits()
    permits.add(context.turn_id, "Edit(src/*)")
    assert not permits.allows(ToolCall("c", "edit_file", {"path": "src/a"}), context)


def test_old_turns_are_forgotten(context: ToolContext) -> None:
    permits = SkillPermits()
    call = ToolCall("c", "execute", {"command": "ls"})
    for number in range(MAX_TURNS + 1):
        permits.add(str(number), "Bash")
    assert not permits.allows(call, replace(context, turn_id="0"))
    assert permits.allows(call, replace(context, turn_id=str(MAX_TURNS)))


class Refusing:
    """A person who refuses every call and remembers it."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def ask(self, request: PermissionRequest) -> str | None:
        self.asked.append(str(request.call.arguments.get("command")))
        return "the user did not allow it"


def skill_in(root: Path, allowed: str = "Bash(touch:*)") -> None:
    folder = root / "maker"
    folder.mkdir(parents=True)
    head = f"name: maker\ndescription: Makes.\nallowed-tools: {allowed}\n"
    (folder / "SKILL.md").write_text(f"---\n{head}---\nTouch made.\n")


async def made(
    tmp_path: Path, *commands: str, load: bool = True, called: bool = False, **fields: Any
) -> list[str]:
    """Use the skill and run commands in one turn; return what was asked about."""
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    calls: list[dict[str, Any]] = [{"name": "load_skill", "arguments": {"name": "maker"}}]
    steps: list[dict[str, Any]] = [{"calls": calls}] if load else []
    steps += [{"calls": [{"name": "execute", "arguments": {"command": one}}]} for one in commands]
    steps.append({"text": "done"})
    (work / "steps.yaml").write_text(json.dumps({"steps": steps}))
    config = AgentConfig(
        name="alice", instruction="Be brief.", model="scripted?file=steps.yaml", shell=True
    )
    config = replace(config, source=work / "alice.md", **fields)
    person = Refusing()
    options = RuntimeOptions(
        workspace=work,
        environ={"HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"},
        permission=person,
    )
    async with Runtime(LoadSet.of([Card(config, "alice.md")]), Settings(), options) as runtime:
        if called:
            skill = await runtime.call_skill("alice", "maker", "now")
            assert skill is not None
            assert (await runtime.default.generate(skill.text, skill=skill)).text == "done"
        else:
            assert await runtime.default.send("go") == "done"
    return person.asked


@pytest.mark.anyio
async def test_a_skill_of_the_home_spares_its_tools_the_question(tmp_path: Path) -> None:
    skill_in(tmp_path / "home/.agents/skills")
    asked = await made(tmp_path, "touch made", "touch other; ls")
    assert asked == ["touch other; ls"]
    assert (tmp_path / "work/made").exists()
    assert not (tmp_path / "work/other").exists()


@pytest.mark.anyio
async def test_a_skill_that_a_person_calls_spares_its_tools_the_question(tmp_path: Path) -> None:
    skill_in(tmp_path / "home/.agents/skills")
    asked = await made(tmp_path, "touch made", "touch other; ls", load=False, called=True)
    assert asked == ["touch other; ls"]
    assert (tmp_path / "work/made").exists()


@pytest.mark.anyio
async def test_a_skill_that_is_not_loaded_permits_nothing(tmp_path: Path) -> None:
    skill_in(tmp_path / "home/.agents/skills")
    assert await made(tmp_path, "touch made", load=False) == ["touch made"]
    assert not (tmp_path / "work/made").exists()


@pytest.mark.anyio
async def test_a_skill_never_overrides_what_a_card_marks(tmp_path: Path) -> None:
    skill_in(tmp_path / "home/.agents/skills")
    assert await made(tmp_path, "touch made", confirm=("exec*",)) == ["touch made"]


@pytest.mark.anyio
async def test_a_named_directory_outside_the_workspace_permits(tmp_path: Path) -> None:
    skill_in(tmp_path / "mine")
    assert await made(tmp_path, "touch made", skills=("../mine",)) == []
    assert (tmp_path / "work/made").exists()


@pytest.mark.anyio
@pytest.mark.parametrize("named", [True, False])
async def test_skills_of_the_workspace_permit_nothing(tmp_path: Path, *, named: bool) -> None:
    skill_in(tmp_path / "work/.agents/skills", "Bash")
    fields: dict[str, Any] = {"skills": (".agents/skills",)} if named else {}
    assert await made(tmp_path, "touch made", **fields) == ["touch made"]
    assert not (tmp_path / "work/made").exists()


@pytest.mark.anyio
async def test_a_link_out_of_the_home_into_the_workspace_permits_nothing(tmp_path: Path) -> None:
    skill_in(tmp_path / "work/own", "Bash")
    (tmp_path / "home/.agents").mkdir(parents=True)
    (tmp_path / "home/.agents/skills").symlink_to(tmp_path / "work/own")
    assert await made(tmp_path, "touch made") == ["touch made"]
