"""Cards a smart agent reaches or writes: what they may not do, and where they may be."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.own_home import own_home

from fast_agent import FastAgent
from fast_agent.cards.load import load_cards
from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.errors import CardError, TrustError
from fast_agent.runtime.smart.smart_agent import describe_error
from fast_agent.tools.human import HumanAnswer
from fast_agent.trust.gate import TrustOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fast_agent.messages.message import ToolResult
    from fast_agent.tools.human import HumanRequest

pytestmark = pytest.mark.anyio

ECHO = "---\nmodel: passthrough\n---\nRepeat."
SECRET = "swordfish"


class Agreeing:
    """A person who allows what is asked, and remembers the questions."""

    def __init__(self, answer: str = "yes") -> None:
        self.answer = answer
        self.asked: list[str] = []

    async def ask(self, request: HumanRequest) -> HumanAnswer:
        self.asked.append(request.message)
        return HumanAnswer(action="accept", content={"call": self.answer})


class Room:
    """A workspace and a home beside it, with a secret outside of both."""

    def __init__(self, directory: Path) -> None:
        self.human: Agreeing | None = Agreeing()
        self.work = directory / "work"
        self.work.mkdir()
        self.home = directory / "home"
        self.outside = directory / "outside"
        self.outside.mkdir()
        (self.outside / "secret.txt").write_text(SECRET)
        (self.outside / "secret.py").write_text(f"{SECRET} is no Python")
        (self.outside / "card.md").write_text(ECHO)
        self.environ = {
            "HOME": str(directory),
            "FAST_AGENT_HOME": str(self.home),
            "MY_TOKEN": SECRET,
        }

    def write(self, name: str, text: str) -> None:
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    async def call(self, tool: str, /, **arguments: object) -> ToolResult:
        return await self.call_trusting(tool, arguments, trust=False)

    async def call_trusting(
        self, tool: str, arguments: Mapping[str, object], *, trust: bool = True
    ) -> ToolResult:
        program = FastAgent(cwd=self.work, environ=self.environ)
        program.smart("desk", model="passthrough")
        async with program.run(trust_cards=trust, human=self.human) as app:
            await app.desk.send(f"***CALL_TOOL {tool} {json.dumps(arguments)}")
            (result,) = [one for message in app.desk.history for one in message.tool_results]
        return result

    def cards(self) -> list[str]:
        place = self.home / "agent-cards"
        return sorted(path.name for path in place.iterdir()) if place.is_dir() else []


@pytest.fixture(name="room")
def _room(tmp_path: Path) -> Room:
    return Room(tmp_path)


@pytest.mark.spec("INTERNAL-28")
@pytest.mark.parametrize("tool", ["smart", "validate", "smart_list_resources"])
@pytest.mark.parametrize(
    "path",
    [
        "../outside/card.md",
        "../outside",
        "/etc",
        "~/outside/card.md",
        "link.md",
        "links/card.md",
        ".git/card.md",
        "fastagent.secrets.yaml",
        "https://example.com/card.md",
        "file:///etc/passwd",
        " ",
        "a\x00b.md",
    ],
)
async def test_a_path_leads_nowhere_else(room: Room, tool: str, path: str) -> None:
    room.write(".git/card.md", ECHO)
    room.write("fastagent.secrets.yaml", f"openai: {{api_key: {SECRET}}}\n")
    (room.work / "link.md").symlink_to(room.outside / "card.md")
    (room.work / "links").symlink_to(room.outside)
    more = {"message": "hi"} if tool == "smart" else {}
    result = await room.call(tool, agent_card_path=path, **more)
    assert result.is_error
    assert SECRET not in result.text
    assert str(room.outside) not in result.text


@pytest.mark.spec("INTERNAL-28")
async def test_whether_something_is_outside_is_not_told(room: Room) -> None:
    there = await room.call("validate", agent_card_path="../outside/card.md")
    not_there = await room.call("validate", agent_card_path="../outside/none.md")
    assert there.text == not_there.text.replace("none.md", "card.md")


@pytest.mark.spec("INTERNAL-28")
async def test_links_in_a_directory_of_cards_are_passed_over(room: Room) -> None:
    room.write("set/echo.md", ECHO)
    (room.work / "set/far.md").symlink_to(room.outside / "card.md")
    result = await room.call("validate", agent_card_path="set")
    assert "echo" in result.text
    assert "far" not in result.text


async def test_cards_of_the_home_directory_are_reached(room: Room) -> None:
    place = room.home / "agent-cards"
    place.mkdir(parents=True)
    (place / "echo.md").write_text(ECHO)
    result = await room.call("smart", agent_card_path=str(place / "echo.md"), message="hi")
    assert (result.is_error, result.text) == (False, "hi")


@pytest.mark.spec("INTERNAL-29")
@pytest.mark.parametrize(
    "field",
    [
        'function_tools: ["code.py:leave"]',
        'tool_hooks: ["code.py:hook"]',
        "tool_hooks: {before_llm_call: ['code.py:turn']}",
        "shell: true",
        "mcp_connect: ['touch ran']",
        "mcp_connect: ['http://127.0.0.1:9/mcp']",
    ],
)
async def test_code_that_comes_with_a_card_does_not_run(room: Room, field: str) -> None:
    code = (
        "from pathlib import Path\n"
        "Path('ran').touch()\n"
        "def leave() -> str: return 'left'\n"
        "async def hook(ctx, args, call_next): return 'hooked'\n"
        "async def turn(ctx): pass\n"
    )
    room.write("code.py", code.replace("'ran'", repr(str(room.work / "ran"))))
    room.write("card.md", f"---\nmodel: passthrough\n{field}\n---\nRepeat.")
    for tool in ("smart", "validate"):
        more = {"message": "hi"} if tool == "smart" else {}
        result = await room.call(tool, agent_card_path="card.md", **more)
        assert "FA811" in result.text
        assert "was not named by the user" in result.text
        assert "card.md:3:1" in result.text  # the key
        assert result.is_error == (tool == "smart")
    assert not (room.work / "ran").exists()


@pytest.mark.spec("INTERNAL-29")
async def test_code_runs_where_the_surroundings_trust_cards(room: Room) -> None:
    room.write("code.py", "def leave() -> str:\n    '''Leave.'''\n    return 'left'\n")
    fields = 'function_tools: ["code.py:leave"]'
    room.write("card.md", f"---\nmodel: passthrough\n{fields}\n---\nRepeat.")
    call = {"agent_card_path": "card.md", "message": "***CALL_TOOL leave {}"}
    assert (await room.call_trusting("smart", call)).text == "left"


@pytest.mark.spec("INTERNAL-29")
async def test_a_card_gets_no_shell_from_the_run(room: Room) -> None:
    room.write("card.md", ECHO)
    program = FastAgent(cwd=room.work, environ=room.environ)
    program.smart("desk", model="passthrough")
    message = '***CALL_TOOL execute {"command": "touch ran"}'
    call = json.dumps({"agent_card_path": "card.md", "message": message})
    async with program.run(shell=True) as app:
        await app.desk.send(f"***CALL_TOOL smart {call}")
        (result,) = [one for each in app.desk.history for one in each.tool_results]
    assert "unknown tool `execute`" in result.text
    assert not (room.work / "ran").exists()


@pytest.mark.spec("INTERNAL-30")
@pytest.mark.parametrize("tool", ["smart", "validate"])
@pytest.mark.parametrize(
    "fields",
    [
        "messages: [../outside/secret.txt]",
        "messages: [near.txt]",
        "messages: [.env]",
        "messages: [fastagent.secrets.yaml]",
        "model: playback?file=../outside/secret.txt",
        "model: scripted?file=../outside/secret.txt",
        'function_tools: ["../outside/secret.py:x"]',
        "skills: [../outside]",
    ],
)
async def test_a_card_names_no_file_elsewhere(room: Room, tool: str, fields: str) -> None:
    (room.work / "near.txt").symlink_to(room.outside / "secret.txt")
    room.write(".env", SECRET)
    room.write("fastagent.secrets.yaml", f"openai: {{api_key: {SECRET}}}\n")
    room.write("card.md", f"---\n{fields}\n---\nRepeat.")
    more = {"message": "hi"} if tool == "smart" else {}
    result = await room.call(tool, agent_card_path="card.md", **more)
    assert "FA812" in result.text
    assert SECRET not in result.text


@pytest.mark.spec("INTERNAL-30")
@pytest.mark.parametrize("name", [".env", "fastagent.secrets.yaml", "../outside/secret.txt"])
async def test_an_instruction_shows_no_hidden_file(room: Room, name: str) -> None:
    room.write(".env", SECRET)
    room.write("fastagent.secrets.yaml", f"openai: {{api_key: {SECRET}}}\n")
    room.write("card.md", f"---\nmodel: passthrough\n---\n{{{{file:{name}}}}}")
    result = await room.call("smart", agent_card_path="card.md", message="hi")
    assert result.is_error
    assert "FA812" in result.text


@pytest.mark.spec("INTERNAL-29")
async def test_a_card_fetches_no_page(room: Room) -> None:
    room.write("card.md", "---\nmodel: passthrough\n---\n{{url:http://127.0.0.1:9/?x}}")
    result = await room.call("smart", agent_card_path="card.md", message="hi")
    assert result.is_error
    assert "fetches a web page" in result.text
    assert "card.md:4:1" in result.text  # the instruction itself; of other fields, the key


@pytest.mark.spec("INTERNAL-30")
async def test_a_card_sees_no_environment_variable(room: Room) -> None:
    room.write("card.md", "---\nmodel: passthrough\ndescription: ${MY_TOKEN}\n---\nRepeat.")
    run = await room.call("smart", agent_card_path="card.md", message="hi")
    assert run.is_error
    assert "see no environment variables" in run.text
    room.write("leak.md", "---\nmodel: ${MY_TOKEN}\nservers: ['${MY_TOKEN}']\n---\nRepeat.")
    check = await room.call("validate", agent_card_path="leak.md")
    assert SECRET not in check.text
    assert "FA206" in check.text


@pytest.mark.spec("INTERNAL-26")
async def test_a_card_is_written_to_the_home_directory_and_runs(room: Room) -> None:
    result = await room.call(
        "create_agent_card",
        name="echo-er",
        description="Repeats: what it is told.",
        instruction="---SYSTEM\nRepeat {{currentDate}}.\n---USER",
        fields={"model": "passthrough", "request_params": {"max_iterations": 3}},
    )
    assert not result.is_error, result.text
    assert room.cards() == ["echo-er.md"]
    file = room.home / "agent-cards" / "echo-er.md"
    (card,) = load_cards([file], environ={}).cards
    assert card.sound
    assert card.config.name == "echo-er"
    assert card.config.description == "Repeats: what it is told."
    assert card.config.instruction is not None
    assert card.config.instruction.strip() == "---SYSTEM\nRepeat {{currentDate}}.\n---USER"
    run = await room.call("smart", agent_card_path=str(file), message="hi")
    assert run.text == "hi"


@pytest.mark.spec("INTERNAL-26")
async def test_a_card_is_not_replaced_silently(room: Room) -> None:
    fields = {"model": "passthrough"}
    await room.call("create_agent_card", name="echo", instruction="One.", fields=fields)
    again = await room.call("create_agent_card", name="echo", instruction="Two.", fields=fields)
    assert again.is_error
    assert "`overwrite`" in again.text
    file = room.home / "agent-cards/echo.md"
    assert "One." in file.read_text()
    forced = await room.call(
        "create_agent_card", name="echo", instruction="Two.", fields=fields, overwrite=True
    )
    assert not forced.is_error
    assert "Two." in file.read_text()


@pytest.mark.spec("INTERNAL-26")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "../up"}, "is not a name of a card"),
        ({"name": "/etc/x"}, "is not a name of a card"),
        ({"name": ".hidden"}, "is not a name of a card"),
        ({"name": "a\x00b"}, "is not a name of a card"),
        ({"name": "x" * 65}, "is not a name of a card"),
        ({"name": "SKILL"}, "is not a name of a card"),
        ({"name": "x"}, "FA105"),
        ({"name": "x", "instruction": "Hi.", "type": "agnt"}, "FA107"),
        ({"name": "x", "instruction": "Hi.", "fields": {"modle": "haiku"}}, "FA101"),
        ({"name": "x", "instruction": "Hi.", "fields": {"model": "haikoo"}}, "FA501"),
        ({"name": "x", "instruction": "Hi.", "fields": {"agents": ["none"]}}, "FA201"),
        ({"name": "x", "instruction": "Hi.", "fields": {"servers": ["none"]}}, "FA206"),
        ({"name": "x", "instruction": "{{internal:none}}"}, "FA703"),
        ({"name": "x", "instruction": "Hi.", "fields": {"shell": True}}, "FA811"),
        ({"name": "x", "instruction": "Hi.", "fields": {"mcp_connect": ["rm -r /"]}}, "FA811"),
        ({"name": "x", "instruction": "Hi.", "fields": {"messages": ["../../x"]}}, "FA812"),
        ({"name": "x", "instruction": "Hi.", "fields": {"name": "y"}}, "is given twice"),
        ({"name": "x", "instruction": "y" * 300_000}, "larger than"),
        ({"name": "x", "instruction": "Hi.", "fields": 3}, "must be an object"),
    ],
)
async def test_a_card_that_is_wrong_is_not_written(
    room: Room, arguments: dict[str, object], message: str
) -> None:
    result = await room.call("create_agent_card", **arguments)
    assert result.is_error
    assert message in result.text
    assert room.cards() == []


@pytest.mark.spec("INTERNAL-26")
async def test_nothing_is_written_through_a_link(room: Room) -> None:
    card = {"name": "secret", "instruction": "Hi.", "overwrite": True}
    room.home.mkdir()
    (room.home / "agent-cards").symlink_to(room.outside)
    before = sorted(room.outside.iterdir())
    assert (await room.call("create_agent_card", **card)).is_error
    assert sorted(room.outside.iterdir()) == before
    (room.home / "agent-cards").unlink()
    (room.home / "agent-cards").mkdir()
    (room.home / "agent-cards/secret.md").symlink_to(room.outside / "secret.txt")
    assert (await room.call("create_agent_card", **card)).is_error
    assert (room.outside / "secret.txt").read_text() == SECRET


async def test_a_card_may_refer_to_the_cards_beside_it(room: Room) -> None:
    fields = {"model": "passthrough"}
    await room.call("create_agent_card", name="helper", instruction="Help.", fields=fields)
    lead = {**fields, "agents": ["helper"]}
    result = await room.call("create_agent_card", name="lead", instruction="Lead.", fields=lead)
    assert not result.is_error, result.text
    assert "`agent` `lead`" in result.text
    place = str(room.home / "agent-cards")
    run = await room.call("smart", agent_card_path=place, agent="lead", message="hi")
    assert run.text == "hi"


async def test_variables_stay_as_they_are_written(room: Room) -> None:
    fields = {"model": "passthrough", "api_key": "${MY_TOKEN}"}
    result = await room.call("create_agent_card", name="keyed", instruction="Hi.", fields=fields)
    assert not result.is_error, result.text
    text = (room.home / "agent-cards/keyed.md").read_text()
    assert "${MY_TOKEN}" in text
    assert SECRET not in text


@pytest.mark.spec("TR-A7.3")
async def test_a_card_is_written_only_where_a_person_allowed_this_one(room: Room) -> None:
    card: dict[str, object] = {
        "name": "made", "instruction": "Hi.", "fields": {"model": "passthrough"}
    }  # fmt: skip
    room.human = None
    assert "no user is connected" in (await room.call("create_agent_card", **card)).text
    room.human = Agreeing("no")
    assert (await room.call("create_agent_card", **card)).is_error
    assert "create_agent_card" in room.human.asked[0]
    assert room.cards() == []
    room.human = None
    assert not (await room.call_trusting("create_agent_card", card)).is_error
    assert room.cards() == ["made.md"]


SERVER = "mcp: {{servers: {{who: {{command: '{python}', args: ['{script}', someone]}}}}}}\n"


@pytest.mark.spec("TR-F2.1b")
@pytest.mark.parametrize(
    ("files", "refused"),
    [
        (
            {"card.md": "---\nmodel: passthrough\nservers: [who]\n---\nHi."},
            "server `who` serves agent `card` (card.md:3)",
        ),
        (
            {"card.md": "---\ntype: smart\nmodel: passthrough\n---\nHi."},
            "it would write .fast-agent/agent-cards/ (card.md:2)",
        ),
        (
            {
                "card.md": "---\nmodel: passthrough\nagents: [kid]\ndefault: true\n"
                "child_history: {kid: {merge_target: messages}}\n---\nHi.",
                "kid.md": "---\nmodel: passthrough\nmessages: [kept.md]\n---\nHi.",
                "kept.md": "---USER\nHello.\n",
            },
            "it would write kept.md",
        ),
    ],
)
async def test_a_card_a_model_named_acts_as_a_found_one(
    room: Room, files: Mapping[str, str], refused: str
) -> None:
    own_home(room.work, room.home)
    config = room.home / "fastagent.config.yaml"
    own = config.read_text()
    script = Path(__file__).parents[2] / "app" / "who_server.py"
    server = SERVER.format(python=sys.executable, script=script)
    config.write_text(server)
    for name, text in files.items():
        room.write(f"cards/{name}", text)
    call = {"agent_card_path": "cards", "agent": "card", "message": "***CALL_TOOL who__who {}"}
    done = await room.call("smart", **call)
    assert done.is_error
    assert f"`card` was not named by the user: {refused}" in done.text
    assert "FA811" in done.text
    config.write_text(own + server)
    room.home.chmod(0o700)
    done = await room.call("smart", **call)
    assert not done.is_error, done.text


@pytest.mark.spec("TR-F2.1b")
async def test_a_card_a_model_named_weakens_no_bound(room: Room) -> None:
    room.write("card.md", "---\nmodel: passthrough\nhuman_input: true\n---\nHi.")
    asked = '***CALL_TOOL request_human_input {"message": "Your key?"}'
    done = await room.call("smart", agent_card_path="card.md", message=asked)
    assert "unknown tool `request_human_input`" in done.text
    assert room.human is not None
    assert room.human.asked == []


@pytest.mark.spec("TR-A7.3", "TR-F2.1b")
async def test_a_smart_agent_of_a_project_writes_where_its_approval_says(room: Room) -> None:
    room.write(
        ".fast-agent/agent-cards/desk.md",
        "---\ntype: smart\nmodel: passthrough\n---\nWrite cards.",
    )
    given = {"name": "echo", "instruction": "Hi.", "fields": {"model": "passthrough"}}
    found = Path(".fast-agent/agent-cards")
    said = f"***CALL_TOOL create_agent_card {json.dumps(given)}"

    def program() -> FastAgent:
        made = FastAgent(cwd=room.work, environ=room.environ, trust=TrustOptions())
        made.load(cards=[found], found=[found])
        return made

    refused = program()
    with pytest.raises(TrustError):
        refused.admission.require("desk")
    (effect,) = refused.admission.decisions.found_sets()[0].effects
    assert (effect.kind, effect.subject) == ("write", f"{found}/")
    refused.gate.approvals.approve(refused.admission.decisions.found_sets()[0])
    approved = program()
    async with approved.run(human=room.human) as app:
        await app.desk.send(said)
    assert room.human is not None
    assert len(room.human.asked) == 1
    assert room.cards() == []
    assert (room.work / found / "echo.md").is_file()
    (room.work / found / "echo.md").unlink()
    (room.work / found).rename(room.outside / "cards")
    (room.work / found).symlink_to(room.outside / "cards")
    async with approved.run(human=room.human) as app:
        await app.desk.send(said)
    assert sorted(one.name for one in (room.outside / "cards").iterdir()) == ["desk.md"]


@pytest.mark.parametrize(
    ("count", "hint", "head"),
    [
        (0, None, "cards are wrong"),
        (1, None, ""),
        (1, "look", "cards are wrong\nhint: look"),
        (2, None, "cards are wrong"),
    ],
)
def test_an_error_is_named_before_its_problems_unless_it_is_the_only_one(
    count: int, hint: str | None, head: str
) -> None:
    problems = [Diagnostic("FA101", f"`a{number}` is wrong") for number in range(count)]
    problems.append(Diagnostic("FA101", "by the way", severity="info"))
    if not count:
        problems.clear()
    found = describe_error(CardError("cards are wrong", hint=hint, diagnostics=problems))
    assert found.startswith(head)
    assert found.count("cards are wrong") == bool(head)
    assert found.count(" is wrong") == count
    assert "by the way" not in found
