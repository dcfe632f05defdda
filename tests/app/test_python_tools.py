# No `from __future__ import annotations`: the hints of these functions are what is tested.
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest

import fast_agent
from fast_agent import CardError, Deps, FastAgent, Media, RunError, ToolContext, ToolRetry
from fast_agent.tools.tool import MissingDependencyError

NewProgram = Callable[..., FastAgent]


class Store:
    def __init__(self, name: str) -> None:
        self.name = name


def read(store: Deps[Store], key: str) -> str:
    """Read."""
    return f"{store.name}/{key}"


READ = '***CALL_TOOL read {"key": "k"}'


@pytest.mark.spec("PYAPI-1")
@pytest.mark.anyio
async def test_a_function_is_given_what_its_parameters_ask_for(new_program: NewProgram) -> None:
    program = new_program()
    program.agent("ann", model="passthrough", function_tools=[read], default=True)
    async with program.run(deps=[1, Store("run")]) as app:
        (spec,) = await app.list_tools()
        assert spec.input_schema["required"] == ["key"]
        assert "store" not in str(spec.input_schema)
        assert await app(READ) == "run/k"
        result = await app.call_tool("read", {"key": "x"})
        assert result.content[0] == (await app.call_tool("read", {"key": "x"})).content[0]
        conversation = app.new_conversation(deps=Store("own"))
        ann = conversation.agent("ann")
        assert await ann.send(READ) == "own/k"
        assert [one.name for one in await ann.list_tools()] == ["read"]
        (content,) = (await ann.call_tool("read", {"key": "z"})).content
        assert getattr(content, "text", None) == "own/z"
        await conversation.aclose()
        with pytest.raises(RunError, match="no tool `raed`"):
            await app.call_tool("raed")


@pytest.mark.spec("PYAPI-1")
def test_the_values_of_a_run_come_before_those_of_the_program(tmp_path: Path) -> None:
    def both(store: Deps[Store], number: Deps[int]) -> str:
        """Read both."""
        return f"{store.name}/{number}"

    environ = {"FAST_AGENT_HOME": str(tmp_path / "home")}
    program = FastAgent(cwd=tmp_path, environ=environ, deps=[Store("program"), 7])
    program.agent("ann", model="passthrough", function_tools=[both], default=True)
    assert program.run_sync("***CALL_TOOL both {}") == "program/7"
    assert program.run_sync("***CALL_TOOL both {}", deps=Store("run")) == "run/7"


@pytest.mark.spec("PYAPI-1")
def test_a_missing_value_ends_the_turn(new_program: NewProgram) -> None:
    program = new_program()
    program.agent("ann", model="passthrough", function_tools=[read], default=True)
    with pytest.raises(MissingDependencyError, match="needs a `Store`"):
        program.run_sync(READ, deps="not one")

    def maybe(store: Deps[Store] | None) -> str:
        """May go without."""
        return str(store)

    program = new_program()
    program.agent("ann", model="passthrough", function_tools=[maybe], default=True)
    assert program.run_sync("***CALL_TOOL maybe {}") == "None"


@pytest.mark.spec("PYAPI-2")
@pytest.mark.anyio
async def test_a_tool_ends_at_its_timeout_and_after_its_retries(new_program: NewProgram) -> None:
    program = new_program()
    ann = program.agent("ann", model="passthrough", default=True)
    calls, release = 0, Event()

    @ann.tool(retries=1)
    async def picky(date: str) -> str:
        """Pick."""
        nonlocal calls
        calls += 1
        raise ToolRetry(f"not {date}")

    @ann.tool(timeout=0.05)
    def hang() -> None:
        """Hang."""
        release.wait()

    from fast_agent.messages.message import ToolCall
    from fast_agent.tools.functions.function import FunctionTool

    async with program.run() as app:
        assert await app('***CALL_TOOL picky {"date": "d"}') == "not d"
        assert "within 0.05 seconds" in await app("***CALL_TOOL hang {}")
    release.set()
    made = FunctionTool(picky)
    calls = 0
    reported: list[str] = []
    for turn in ("t1", "t1", "t1", "t2"):
        context = ToolContext(agent_name="a", turn_id=turn, call_id="c", correlation_id=turn)
        result = await made.call(ToolCall("c", "picky", {"date": turn}), context)
        reported.append(str(getattr(result.content[0], "text", "")))
    assert reported[:2] == ["not t1", "not t1"]
    assert "failed 2 times" in reported[2]
    assert reported[3] == "not t2"
    assert calls == 3


@pytest.mark.spec("PYAPI-3")
@pytest.mark.anyio
async def test_tools_are_given_to_all_agents_or_to_one(new_program: NewProgram) -> None:
    program = new_program()
    ann = program.agent("ann", model="passthrough", default=True)

    @program.tool
    def shared() -> Media:
        """Everybody."""
        return Media(b"\xff\x00", "application/x-thing", "thing")

    @ann.tool
    def own() -> str:
        """Own."""
        return "own"

    program.agent("bob", model="passthrough")
    program.chain("line", sequence=["ann", "bob"])
    assert callable(own)
    with pytest.raises(CardError, match="no function tools"):
        program.chain("other", sequence=["bob"]).tool(own)
    async with program.run() as app:
        assert [one.name for one in await app.list_tools("ann")] == ["shared", "own"]
        assert [one.name for one in await app.list_tools("bob")] == ["shared"]
        result = await app.call_tool("shared", agent="bob")
        assert getattr(result.content[0], "mime_type", None) == "application/x-thing"
        assert await app.bob("hello") == "hello"
        said = await app.bob("***CALL_TOOL shared {}")
        assert said == "[file:///thing, application/x-thing, 2 bytes]"
        assert {"ann", "bob", "map", "call_tool"} <= set(dir(app))
        for refused in (app.list_tools("line"), app.line.list_tools(), app.line.call_tool("own")):
            with pytest.raises(RunError, match="no tools of its own"):
                await refused
        with pytest.raises(RunError, match="starts an event loop"):
            program.run_sync("hello")
    assert {"Deps", "FastAgent", "tool"} <= set(dir(fast_agent))
    assert "admission" not in dir(program)
    assert {"run", "tool", "load_agents"} <= set(dir(program))


def test_an_error_of_cards_is_its_whole_report(tmp_path: Path, new_program: NewProgram) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.md").write_text(f"---\nname: {name}\nmodle: x\n---\nHi\n")
    with pytest.raises(CardError) as caught:
        new_program().load_agents(tmp_path)
    text = str(caught.value)
    assert "one.md:3:1: error[FA101]" in text
    assert "two.md:3:1: error[FA101]" in text


PROGRAM = """
from fast_agent import FastAgent
fast = FastAgent("desk")
fast.agent("ann", "Hi.", model="passthrough", default=True)
fast.agent("bob", "Ho.", model="passthrough")
async def talk(app):
    print("ran", await app.ann("x"))
fast.main(talk)
"""


WORKFLOW = """\
import asyncio, sys
from fast_agent import FastAgent

fast = FastAgent("workflow")


@fast.agent("ann", "Be brief.", model="passthrough", default=True)
async def main():
    async with fast.run() as app:
        print(await app("ran"), *sys.argv[1:])


if __name__ == "__main__":
    asyncio.run(main())
"""


@pytest.mark.spec("CARD-90")
@pytest.mark.parametrize(
    ("arguments", "status", "said", "written"),
    [
        (["--dump", "out"], 0, "", ["ann.md"]),
        (["--verbose", "--dump-agents=out"], 0, "", ["ann.md"]),
        (["--dump-yaml", "out"], 0, "", ["ann.yaml"]),
        (["--dump-agent", "ann", "--dump-agent-path", "out/one.md"], 0, "", ["one.md"]),
        (["--dump-agent", "ann"], 1, "error: `--dump-agent` and `--dump-agent-path` must", []),
        (["--dump"], 2, "expected one argument", []),
        (["--dumped", "out"], 0, "ran --dumped out", []),
        (["--dump=out", "-m", "--model"], 0, "", ["ann.md"]),
    ],
)
def test_a_script_that_runs_its_own_loop_dumps_its_agents(
    arguments: list[str], status: int, said: str, written: list[str], tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "workflow.py").write_text(WORKFLOW)
    done = run_script(tmp_path, "workflow.py", *arguments)
    assert (done.returncode, "Traceback" in done.stderr) == (status, False)
    assert said in done.stdout + done.stderr
    assert ("ran" in done.stdout) is (said.startswith("ran"))
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == written


def test_a_program_that_another_script_imports_dumps_nothing(tmp_path: Path) -> None:
    (tmp_path / "workflow.py").write_text(WORKFLOW)
    (tmp_path / "other.py").write_text("import asyncio, workflow\nasyncio.run(workflow.main())\n")
    done = run_script(tmp_path, "other.py", "--dump", "out")
    assert (done.returncode, done.stdout) == (0, "ran --dump out\n")
    assert not (tmp_path / "out").exists()


def run_script(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script with a home of its own."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=place,
        env={"HOME": str(place), "FAST_AGENT_HOME": str(place / "home"), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.spec("PYAPI-4")
@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ((), 0, "ran x"),
        (("--message", "hello", "--agent", "ann"), 0, "hello"),
        (("--message", "hello", "--agent", "eve"), 1, "no agent is named `eve`"),
        (("--message", "hello", "--model", "nope.x"), 1, "nope"),
        (("--mesage", "x"), 2, "--mesage"),
        (("--dump", "out"), 0, ""),
        (("--dump-agent", "ann"), 1, "must be used together"),
    ],
)
def test_a_program_takes_the_standard_options(
    arguments: tuple[str, ...], status: int, said: str, tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run_script(tmp_path, "program.py", *arguments)
    assert (done.returncode, "Traceback" in done.stderr) == (status, False)
    assert said in done.stdout + done.stderr
    written = sorted(one.name for one in (tmp_path / "out").glob("*"))
    assert written == (["ann.md", "bob.md"] if "--dump" in arguments else [])
