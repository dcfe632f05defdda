from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fast_agent.agents import agent_skills
from fast_agent.agents.agent_skills import directories_of
from fast_agent.agents.live_agent import LlmAgent
from fast_agent.agents.runtime_options import RuntimeOptions
from fast_agent.cards.agent_config import AgentConfig
from fast_agent.cards.card import Card
from fast_agent.cards.load_set import LoadSet
from fast_agent.config.home import SKILL_FOLDERS
from fast_agent.config.settings import McpSettings, ServerSettings, Settings, SkillsSettings
from fast_agent.resources.skill_client.entry import SkillError
from fast_agent.runtime.runtime import Runtime
from fast_agent.tools.human import HumanAnswer, HumanRequest
from fast_agent.tools.skills.gate import check_names

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.anyio

SERVER = Path(__file__).parent.parent / "mcp" / "servers" / "skills.py"
INSTRUCTION = "Be brief.\n{{agentSkills}}"


def write_skill(root: Path, name: str, about: str = "Use it.", body: str = "Do it well.") -> Path:
    folder = root / name
    folder.mkdir(parents=True)
    text = f"---\nname: {name}\ndescription: {about}\n---\n{body}\n"
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    return folder


class Person:
    """A person who answers every question alike and remembers them."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.asked: list[HumanRequest] = []

    async def ask(self, request: HumanRequest) -> HumanAnswer:
        self.asked.append(request)
        assert request.schema is not None
        properties = request.schema["properties"]
        assert isinstance(properties, dict)
        return HumanAnswer(action="accept", content=dict.fromkeys(properties, self.answer))


@pytest.fixture(name="run")
def _run(tmp_path: Path) -> Callable[..., Runtime]:
    def make(
        *,
        settings: Settings | None = None,
        person: Person | None = None,
        workspace: Path = tmp_path,
        **fields: Any,
    ) -> Runtime:
        config = AgentConfig(name="alice", instruction=INSTRUCTION, model="passthrough")
        config = replace(config, source=tmp_path / "alice.md", **fields)
        options = RuntimeOptions(
            workspace=workspace, environ={"FAST_AGENT_HOME": str(tmp_path / "home")}, human=person
        )
        return Runtime(LoadSet.of([Card(config, "alice.md")]), settings or Settings(), options)

    return make


def with_server(*arguments: str) -> Settings:
    server = ServerSettings(
        name="web", transport="stdio", command=sys.executable, args=(str(SERVER), *arguments)
    )
    return Settings(mcp=McpSettings(servers={"web": server}))


async def call(runtime: Runtime, tool: str, arguments: str) -> str:
    return await runtime.default.send(f"***CALL_TOOL {tool} {arguments}")


async def prompt_of(runtime: Runtime) -> tuple[str, list[str]]:
    agent = runtime.default
    assert isinstance(agent, LlmAgent)
    table = await agent._setup.tools.table()
    return await agent._setup.render(), list(table)


async def test_skills_of_the_usual_directories_are_in_the_prompt_and_can_be_loaded(
    run: Callable[..., Runtime], tmp_path: Path
) -> None:
    write_skill(tmp_path / ".claude" / "skills", "code-review", "Review a <change>.")
    folder = write_skill(tmp_path / ".agents" / "skills", "plan", "Plan work.", "Read `a.md`.")
    (folder / "a.md").write_text("step one")
    async with run() as runtime:
        prompt, tools = await prompt_of(runtime)
        assert '<skill name="code-review">Review a &lt;change&gt;.</skill>' in prompt
        assert '<skill name="plan">Plan work.</skill>' in prompt
        assert tools == ["load_skill", "read_skill_file"]
        assert "not loaded" in await call(
            runtime, "read_skill_file", '{"skill": "plan", "path": "a.md"}'
        )
        loaded = await call(runtime, "load_skill", '{"name": "plan"}')
        assert loaded == (
            '<skill_content name="plan" server="local" trust="local">\n'
            f"The skill is in the directory `{folder}`; relative paths in it start there, also"
            " those of scripts that you run.\nRead `a.md`.\n"
            "<skill_files>\na.md\n</skill_files>\n</skill_content>"
        )
        read = await call(runtime, "read_skill_file", '{"skill": "plan", "path": "a.md"}')
        assert read.splitlines()[1] == "step one"
        assert "no skill `plam`" in await call(runtime, "load_skill", '{"name": "plam"}')


async def test_a_skill_with_line_ends_of_windows_is_loaded_without_its_frontmatter(
    run: Callable[..., Runtime], tmp_path: Path
) -> None:
    folder = write_skill(tmp_path / ".agents" / "skills", "plan", "Plan work.", "Read `a.md`.")
    head = folder / "SKILL.md"
    head.write_bytes(b"\xef\xbb\xbf" + head.read_bytes().replace(b"\n", b"\r\n"))
    async with run() as runtime:
        loaded = await call(runtime, "load_skill", '{"name": "plan"}')
    assert "description" not in loaded
    assert loaded.endswith("\nRead `a.md`.\n</skill_content>")


async def test_without_skills_there_is_neither_block_nor_tool(
    run: Callable[..., Runtime], tmp_path: Path
) -> None:
    async with run() as runtime:
        assert await prompt_of(runtime) == ("Be brief.\n", [])
        # A skill that comes later is there at the next turn, and one that goes is gone.
        folder = write_skill(tmp_path / ".fast-agent" / "skills", "late")
        prompt, tools = await prompt_of(runtime)
        assert 'name="late"' in prompt
        assert tools == ["load_skill", "read_skill_file"]
        (folder / "SKILL.md").unlink()
        assert await prompt_of(runtime) == ("Be brief.\n", [])


async def test_skills_above_the_workspace_are_looked_for_once_in_a_while(
    run: Callable[..., Runtime], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1_000.0]
    monkeypatch.setattr(agent_skills, "monotonic", lambda: clock[0])
    (tmp_path / ".git").mkdir()
    inside = tmp_path / "inside"
    inside.mkdir()
    async with run(workspace=inside) as runtime:
        assert await prompt_of(runtime) == ("Be brief.\n", [])
        write_skill(tmp_path / ".claude" / "skills", "above")
        clock[0] += agent_skills.FAR_SECONDS - 0.1
        assert await prompt_of(runtime) == ("Be brief.\n", [])
        clock[0] += 0.1
        prompt, _ = await prompt_of(runtime)
        assert 'name="above"' in prompt
        # Those of the workspace are there at once.
        write_skill(inside / ".claude" / "skills", "within")
        prompt, _ = await prompt_of(runtime)
        assert 'name="within"' in prompt


async def test_a_card_names_its_directories_or_none(
    run: Callable[..., Runtime], tmp_path: Path
) -> None:
    write_skill(tmp_path / ".claude" / "skills", "usual")
    write_skill(tmp_path / "own", "mine")
    write_skill(tmp_path / "set", "configured")
    settings = Settings(skills=SkillsSettings(directories=(tmp_path / "set",)))
    for fields, names in (
        ({}, ["usual"]),
        ({"skills": ("own",)}, ["mine"]),
        ({"skills": ()}, []),
        ({"settings": settings}, ["configured"]),
        ({"settings": settings, "skills": ("own",)}, ["mine"]),
    ):
        async with run(**fields) as runtime:
            prompt, _ = await prompt_of(runtime)
            assert re.findall('name="(.*?)"', prompt) == names


async def test_a_card_from_elsewhere_names_no_directories_here(tmp_path: Path) -> None:
    config = AgentConfig(name="far", skills=("/etc",), remote="https://example.com/far.md")
    assert directories_of(config, SkillsSettings(), tmp_path) == ((), True)


async def test_without_the_placeholder_the_tool_tells_of_the_skills(
    run: Callable[..., Runtime], tmp_path: Path
) -> None:
    write_skill(tmp_path / ".claude" / "skills", "plan", "Plan work.")
    async with run(instruction="Be brief.") as runtime:
        agent = runtime.default
        assert isinstance(agent, LlmAgent)
        spec = (await agent._setup.tools.table())["load_skill"].spec
        assert "- plan: Plan work." in spec.description
    async with run() as runtime:
        agent = runtime.default
        assert isinstance(agent, LlmAgent)
        spec = (await agent._setup.tools.table())["load_skill"].spec
        assert "Plan work." not in spec.description


async def test_a_skill_for_people_only_is_not_offered(
    run: Callable[..., Runtime], tmp_path: Path
) -> None:
    folder = write_skill(tmp_path / ".claude" / "skills", "deploy")
    text = "---\nname: deploy\ndescription: d\ndisable-model-invocation: true\n---\nGo\n"
    (folder / "SKILL.md").write_text(text)
    async with run() as runtime:
        assert await prompt_of(runtime) == ("Be brief.\n", [])


async def test_an_edited_skill_is_read_as_it_is_now(
    run: Callable[..., Runtime], tmp_path: Path
) -> None:
    folder = write_skill(tmp_path / ".claude" / "skills", "plan")
    (folder / "a.md").write_text("one")
    async with run() as runtime:
        assert "Do it well." in await call(runtime, "load_skill", '{"name": "plan"}')
        (folder / "a.md").write_text("another")
        read = await call(runtime, "read_skill_file", '{"skill": "plan", "path": "a.md"}')
        assert "another" in read


async def test_skills_of_servers_stand_beside_those_of_directories(
    run: Callable[..., Runtime], tmp_path: Path
) -> None:
    write_skill(tmp_path / ".claude" / "skills", "refunds", "Our own.")
    person = Person("yes")
    settings = with_server("--home", str(tmp_path))
    async with run(settings=settings, person=person, servers=("web",)) as runtime:
        prompt, tools = await prompt_of(runtime)
        assert '<skill name="refunds">Our own.</skill>' in prompt
        assert '<skill name="web/refunds" server="web" trust="untrusted">' in prompt
        assert tools == ["load_skill", "read_skill_file"]
        assert "Do it well." in await call(runtime, "load_skill", '{"name": "refunds"}')
        assert person.asked == []
        assert "# Refunds" in await call(runtime, "load_skill", '{"name": "web/refunds"}')
        assert len(person.asked) == 1
    assert (tmp_path / "home" / "skill-approvals.json").exists()


@pytest.mark.spec("TR-E3.2")
@pytest.mark.parametrize("lists", [(), ("--convention", "seed"), ("--lie", "empty")])
async def test_a_servers_own_tools_for_its_skills_do_not_stand_beside_the_gate(
    run: Callable[..., Runtime], tmp_path: Path, lists: tuple[str, ...]
) -> None:
    settings = with_server("--home", str(tmp_path), "--tools", *lists)
    async with run(settings=settings, servers=("web",)) as runtime:
        _, tools = await prompt_of(runtime)
        assert [name for name in tools if "__" in name] == ["web__refund"]
        assert tools[-2:] == ["load_skill", "read_skill_file"]
        guessed = await call(runtime, "web__load_skill", '{"name": "refunds"}')
        assert "# Refunds" not in guessed


async def test_a_server_without_skills_keeps_tools_of_such_names(
    run: Callable[..., Runtime], tmp_path: Path
) -> None:
    seed = ("--convention", "seed", "--lie", "nothing")
    settings = with_server("--home", str(tmp_path), "--tools", *seed)
    async with run(settings=settings, servers=("web",)) as runtime:
        assert "web__load_skill" in (await prompt_of(runtime))[1]


@pytest.mark.spec("H15")
async def test_the_shell_asks_once_a_skill_of_a_server_was_loaded(
    run: Callable[..., Runtime], tmp_path: Path
) -> None:
    execute = '{"command": "echo ran"}'
    settings = with_server("--home", str(tmp_path))
    async with run(settings=settings, servers=("web",), shell=True) as runtime:
        assert "ran" in await call(runtime, "execute", execute)
        assert "# Refunds" in await call(runtime, "load_skill", '{"name": "refunds"}')
        refused = await call(runtime, "execute", execute)
        assert "the user did not allow the command" in refused
        # What stands in a history travels; so a fresh instance asks too.
        clone = runtime.clone("alice")
        assert "the user did not allow" in await clone.send(f"***CALL_TOOL execute {execute}")


def copy_in(text: str) -> Path:
    """Return the directory that `load_skill` names."""
    found = re.search("in the directory `([^`]+)`", text)
    assert found is not None, text
    return Path(found[1])


@pytest.mark.spec("H19")
async def test_an_approved_skill_of_a_server_is_on_disk_as_long_as_the_run(
    run: Callable[..., Runtime], tmp_path: Path
) -> None:
    settings = with_server("--home", str(tmp_path))
    load = '{"name": "refunds"}'
    person = Person("yes")
    async with run(settings=settings, person=person, servers=("web",), shell=True) as runtime:
        copy = copy_in(await call(runtime, "load_skill", load))
        assert copy.name == "refunds"
        assert copy.parent.parent.stat().st_mode & 0o777 == 0o700
        assert (copy / "data.bin").read_bytes() == b"\xff\xfe\x00"
        assert all(one.stat().st_mode & 0o333 == 0 for one in copy.rglob("*") if one.is_file())
        asked = len(person.asked)
        ran = await call(runtime, "execute", json.dumps({"command": f"cat {copy}/terms.md"}))
        assert "thirty days" in ran
        assert len(person.asked) == asked + 1, "each command is asked about"
        read = '{"skill": "refunds", "path": "data.bin"}'
        assert f"it is at `{copy}/data.bin`" in await call(runtime, "read_skill_file", read)
        # What a command did to the copy does not last.
        (copy / "terms.md").chmod(0o600)
        (copy / "terms.md").write_text("forged")
        assert copy_in(await call(runtime, "load_skill", load)) == copy
        assert (copy / "terms.md").read_text() == "thirty days"
    assert not copy.parent.parent.exists()


@pytest.mark.spec("H19")
@pytest.mark.parametrize("shell", [True, False])
async def test_a_skill_is_copied_only_where_it_was_approved_and_can_be_run(
    run: Callable[..., Runtime], tmp_path: Path, *, shell: bool
) -> None:
    settings = with_server("--home", str(tmp_path))
    person = None if shell else Person("yes")
    async with run(settings=settings, person=person, servers=("web",), shell=shell) as runtime:
        assert "in the directory" not in await call(runtime, "load_skill", '{"name": "refunds"}')


@pytest.mark.spec("H19")
@pytest.mark.parametrize(
    "names",
    [
        ("../x",), ("/etc/x",), ("a\nb",), ("aux.txt",), ("a/NUL",), ("a:b",), ("a\\b",), ("a./b",),
        ("x" * 256,), ("a/b", "A/c"), ("caf\u00e9", "cafe\u0301"), ("Terms.md", "terms.md"),
    ],
)  # fmt: skip
def test_names_that_are_not_copied(names: tuple[str, ...]) -> None:
    with pytest.raises(SkillError):
        check_names(names)


def test_names_that_are_copied() -> None:
    check_names(("SKILL.md", "scripts/run.sh", "scripts/console.py", ".hidden", "a b/\u00fc.md"))


@pytest.mark.spec("T-18")
async def test_a_server_without_an_end_to_its_skills_stops_no_turn(
    run: Callable[..., Runtime], tmp_path: Path
) -> None:
    settings = with_server("--home", str(tmp_path), "--lie", "endless")
    async with run(settings=settings, servers=("web",)) as runtime:
        assert await runtime.default.send("hello") == "hello"
        assert (await prompt_of(runtime))[0] == "Be brief.\n"


@pytest.mark.spec("H15")
async def test_a_skill_that_a_reached_card_loads_is_known_to_the_agent_around_it(
    run: Callable[..., Runtime], tmp_path: Path
) -> None:
    reached = tmp_path / "reached.md"
    reached.write_text(
        "---\ntype: agent\nname: far\nmodel: passthrough\nservers: [web]\n---\nBe brief.\n"
    )
    settings = with_server("--home", str(tmp_path))
    execute = '{"command": "echo ran"}'
    async with run(settings=settings, type="smart", shell=True) as runtime:
        assert "ran" in await call(runtime, "execute", execute)
        arguments = {
            "agent_card_path": "reached.md",
            "message": '***CALL_TOOL load_skill {"name": "refunds"}',
        }
        assert "# Refunds" in await call(runtime, "smart", json.dumps(arguments))
        assert "the user did not allow the command" in await call(runtime, "execute", execute)


def with_tools(home: Path) -> tuple[Settings, dict[str, Any]]:
    """Return an agent with servers of skills and of tools, and a function that writes."""
    (home / "tools.py").write_text(
        "from pathlib import Path\n\n"
        "def note(text: str) -> str:\n"
        '    """Write a text down."""\n'
        f"    with Path({str(home / 'notes')!r}).open('a') as file:\n"
        "        file.write(text)\n"
        "    return 'noted'\n"
    )
    servers = dict(with_server("--home", str(home)).mcp.servers)
    program = SERVER.with_name("everything.py")
    servers["everything"] = ServerSettings(
        name="everything", transport="stdio", command=sys.executable, args=(str(program), "stdio")
    )
    settings = Settings(mcp=McpSettings(servers=servers))
    return settings, {
        "servers": ("web", "everything"),
        "function_tools": ("tools.py:note",),
        "files": "write",
    }


@pytest.mark.spec("H15", "T-21")
async def test_functions_and_server_tools_wait_for_approval_of_a_loaded_skill(
    run: Callable[..., Runtime], tmp_path: Path
) -> None:
    settings, fields = with_tools(tmp_path)
    notes = tmp_path / "notes"
    async with run(settings=settings, **fields) as runtime:
        names = (await prompt_of(runtime))[1]
        add = next(name for name in names if name.endswith("add"))
        assert "5" in await call(runtime, add, '{"a": 2, "b": 3}')
        assert "noted" in await call(runtime, "note", '{"text": "one"}')
        assert "# Refunds" in await call(runtime, "load_skill", '{"name": "refunds"}')
        for tool, arguments in ((add, '{"a": 2, "b": 3}'), ("note", '{"text": "two"}')):
            refused = await call(runtime, tool, arguments)
            assert "`refunds` of server `web` was loaded without approval" in refused
            assert "the user did not allow the call" in refused
        # Another instance may hold the text in its history, so it is kept from acting too.
        clone = runtime.clone("alice")
        assert "the user did not allow" in await clone.send('***CALL_TOOL note {"text": "three"}')
        write = '{"path": "a.txt", "content": "x"}'
        assert "the user did not allow the call" in await call(runtime, "write_file", write)
        assert not (tmp_path / "a.txt").exists()
        # What only reads the skill goes on.
        read = '{"skill": "refunds", "path": "terms.md"}'
        assert "<skill_file" in await call(runtime, "read_skill_file", read)
    assert notes.read_text() == "one"


@pytest.mark.spec("H15", "H18", "T-21")
async def test_an_approved_skill_leaves_functions_and_server_tools_as_they_were(
    run: Callable[..., Runtime], tmp_path: Path
) -> None:
    settings, fields = with_tools(tmp_path)
    person = Person("yes")
    async with run(settings=settings, person=person, **fields) as runtime:
        await call(runtime, "load_skill", '{"name": "refunds"}')
        assert "noted" in await call(runtime, "note", '{"text": "one"}')
        assert len(person.asked) == 1, "the load alone was asked about"
    async with run(settings=settings, **fields) as runtime:  # approved before, and nobody there
        await call(runtime, "load_skill", '{"name": "refunds"}')
        assert "noted" in await call(runtime, "note", '{"text": "two"}')
    assert (tmp_path / "notes").read_text() == "onetwo"


def of_person(tmp_path: Path, **fields: Any) -> Runtime:
    """Make an agent whose person has a home beside the workspace."""
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    fields = {"source": work / "alice.md", **fields}
    config = AgentConfig(name="alice", instruction=INSTRUCTION, model="passthrough", **fields)
    home = str(tmp_path / "home")
    options = RuntimeOptions(workspace=work, environ={"FAST_AGENT_HOME": home, "HOME": home})
    return Runtime(LoadSet.of([Card(config, "alice.md")]), Settings(), options)


@pytest.mark.spec("SKILLS-1")
async def test_scripts_of_a_skill_run_by_the_directory_it_says(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "home/.agents/skills", "count", body="Run `scripts/count.sh`.")
    (folder / "scripts").mkdir()
    (folder / "scripts/count.sh").write_text("echo $((40 + 2))\n")
    (folder / "logo.bin").write_bytes(b"\xff\xfe")
    async with of_person(tmp_path, shell=True, files="read") as runtime:
        loaded = await call(runtime, "load_skill", '{"skillName": "count"}')
        place = re.search(r"in the directory `([^`]+)`", loaded)
        assert place is not None
        assert Path(place[1]) == folder
        command = json.dumps({"command": f"sh {place[1]}/scripts/count.sh"})
        assert (await call(runtime, "execute", command)).startswith("42")
        read = json.dumps({"path": f"{place[1]}/scripts/count.sh"})
        assert "40 + 2" in await call(runtime, "read_file", read)
        binary = await call(runtime, "read_skill_file", '{"skill": "count", "path": "logo.bin"}')
        assert f"it is at `{folder}/logo.bin`" in binary


@pytest.mark.spec("SKILLS-2")
async def test_the_skills_of_a_home_come_first_and_links_in_them_count_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own = tmp_path / "home/.claude/skills"
    write_skill(own, "plan", "Mine.")
    write_skill(tmp_path / "work/.agents/skills", "plan", "Of the project.")
    linked = write_skill(tmp_path / "home/src/tools", "tools", "Linked.")
    strange = write_skill(tmp_path / "elsewhere", "strange", "No.")
    (own / "tools").symlink_to(linked)
    (own / "again").symlink_to(linked)
    (own / "strange").symlink_to(strange)
    write_skill(tmp_path / "work/hidden", "found", "No.")
    (tmp_path / "work/.agents/skills/found").symlink_to(tmp_path / "work/hidden/found")
    async with of_person(tmp_path) as runtime:
        reported = [(one.name, one.entry.description) for one in await runtime.skills("alice")]
        assert reported[0] == ("plan", "Mine.")
        assert ("tools", "Linked.") in reported
        assert {name.rpartition("/")[2] for name, _ in reported} == {"plan", "tools"}
    # Only of the links that were not followed is anything said.
    links = [one for one in caplog.messages if "links are not followed" in one]
    assert len(links) == 2
    assert f"{own / 'strange'}: " in links[0]
    assert f"{tmp_path / 'work/.agents/skills/found'}: " in links[1]


@pytest.mark.spec("SKILLS-UP")
@pytest.mark.parametrize(
    ("checkout", "names"),
    [
        (None, ["here"]),
        ("home/src/project/package/.git", ["here"]),
        ("home/src/project/.git", ["here", "above"]),
        ("home/.git", ["here"]),
        (".git", ["here"]),
    ],
)
def test_skills_are_found_up_to_the_root_of_the_checkout(
    tmp_path: Path, checkout: str | None, names: list[str]
) -> None:
    work = tmp_path / "home/src/project/package"
    work.mkdir(parents=True)
    if checkout is not None:
        (tmp_path / checkout).mkdir(exist_ok=True)
    places = {"here": work, "above": work.parent}
    config = AgentConfig(name="a", source=work / "a.md")
    found, optional = directories_of(config, SkillsSettings(), work, tmp_path / "home")
    assert optional
    assert list(found[2:]) == [
        f"{places[name]}/{folder}" for name in names for folder in SKILL_FOLDERS
    ]


@pytest.mark.spec("SKILLS-3")
async def test_people_call_skills_that_models_may_not(tmp_path: Path) -> None:
    skills = tmp_path / "work/.agents/skills"
    folder = write_skill(
        skills, "ship", "Ship.\ndisable-model-invocation: true", "Ship $ARGUMENTS."
    )
    write_skill(skills, "inner", "For models.\nuser-invocable: false")
    write_skill(skills, "note", "Use when: a note is asked for.", "Write a note.")
    async with of_person(tmp_path) as runtime:
        assert [one.name for one in await runtime.skills("alice")] == ["inner", "note"]
        assert [one.name for one in runtime.callable_skills("alice")] == ["note", "ship"]
        called = await runtime.call_skill("alice", "ship", "it to prod")
        assert called is not None
        assert f"in the directory `{folder}`" in called.text
        assert "Ship it to prod." in called.text
        noted = await runtime.call_skill("alice", "note", "about tea")
        assert noted is not None
        assert noted.text.endswith("about tea")
        assert await runtime.call_skill("alice", "inner", "") is None


def test_skills_of_a_card_are_named_from_its_directory(tmp_path: Path) -> None:
    config = AgentConfig(name="a", skills=("mine",), source=tmp_path / "cards/a.md")
    found = directories_of(config, SkillsSettings(), tmp_path)
    assert found == ((str(tmp_path / "cards/mine"),), False)
    in_python = AgentConfig(name="a", skills=("mine",))
    assert directories_of(in_python, SkillsSettings(), tmp_path)[0] == (str(tmp_path / "mine"),)
