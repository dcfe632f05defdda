"""An app under every runner: as a script, in a notebook, in a web framework, beside other loops."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from urllib.request import urlopen

import pytest
from tests.patience import PATIENCE
from tests.processes import unexpected
from tests.runners import RUNNERS, Runner, RunnerName, run_by

from fast_agent.errors import RunError
from fast_agent.mcp.server import ServerSpec, StdioTarget

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent import FastAgent
    from fast_agent.agent_app import AgentApp

    NewProgram: TypeAlias = Callable[..., FastAgent]

SERVER = Path(__file__).parents[1] / "mcp/servers/everything.py"
ECHO = '***CALL_TOOL every__echo {"text": "heard"}'
FAN = "## one\n\nhello\n\n## two\n\nhello"


@pytest.fixture(name="program")
def _program(new_program: NewProgram) -> FastAgent:
    program = new_program()
    target = StdioTarget(command=sys.executable, args=(str(SERVER), "stdio"))
    program.add_server(ServerSpec(name="every", target=target))
    program.agent("one", model="slow?seconds=0.001")
    program.agent("two", model="slow?seconds=0.001")
    program.agent("tooled", model="passthrough", servers=["every"])
    program.parallel("fan", fan_out=["one", "two"], default=True)
    return program


@pytest.mark.spec("LOOP-2")
@pytest.mark.parametrize("name", RUNNERS)
def test_each_step_in_a_task_of_its_own_as_the_cells_of_a_notebook(
    program: FastAgent, name: RunnerName
) -> None:
    stack = AsyncExitStack()
    runner = Runner(name)
    try:
        app: AgentApp = runner.run(lambda: stack.enter_async_context(program.run()))
        assert runner.run(lambda: app("hello")) == FAN
        assert runner.run(lambda: app(ECHO, "tooled")) == "heard"
        assert runner.run(lambda: app("hello")) == FAN
        assert runner.run(lambda: app(ECHO, "tooled")) == "heard"
        runner.run(stack.aclose)
        assert runner.run(_others) == set()
    finally:
        runner.close()


async def _others() -> set[str]:
    """Return the tasks that are left, but for those of the runner."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    return {task.get_name() for task in left if "Runner." not in str(task.get_coro())}


@pytest.mark.spec("LOOP-2")
@pytest.mark.parametrize("name", RUNNERS)
def test_tasks_that_use_it_at_once(program: FastAgent, name: RunnerName) -> None:
    async def main() -> None:
        async with program.run() as app:
            answers = await asyncio.gather(
                app("hello", "fan"), app(ECHO, "tooled"), app("hi", "one"), app(ECHO, "tooled")
            )
        assert answers == [FAN, "heard", "hi", "heard"]

    run_by(name, main)


@pytest.mark.spec("LOOP-3")
@pytest.mark.parametrize("name", RUNNERS)
def test_one_program_in_one_loop_after_another_and_in_threads(
    program: FastAgent, name: RunnerName
) -> None:
    async def main() -> str:
        async with program.run() as app:
            return await app("hello")

    assert run_by(name, main) == run_by(name, main) == FAN
    with ThreadPoolExecutor(2) as threads:
        answers = [threads.submit(run_by, name, main) for _ in range(2)]
        assert [answer.result() for answer in answers] == [FAN, FAN]


@pytest.mark.spec("LOOP-9")
@pytest.mark.parametrize("agent", ["one", "tooled", "fan"])
def test_another_loop_than_that_of_the_app_is_refused(program: FastAgent, agent: str) -> None:
    def elsewhere(app: AgentApp) -> None:
        run_by("asyncio.run", lambda: app("hello", agent))

    async def main() -> None:
        async with program.run() as app:
            with pytest.raises(RunError, match="the agents run in another event loop"):
                await asyncio.to_thread(elsewhere, app)
            loop = asyncio.get_running_loop()
            sent = await asyncio.to_thread(
                lambda: asyncio.run_coroutine_threadsafe(app(ECHO, "tooled"), loop).result(PATIENCE)
            )
            assert sent == "heard"
            async with app.new_conversation() as other:
                with pytest.raises(RunError, match="in another event loop"):
                    await asyncio.to_thread(
                        run_by, "asyncio.run", lambda: app.agent(agent, other).send("hello")
                    )

    run_by("asyncio.run", main)


@pytest.mark.parametrize("name", RUNNERS)
def test_what_the_body_raises_comes_out_as_it_is(program: FastAgent, name: RunnerName) -> None:
    async def main() -> None:
        async with program.run() as app:
            await app("hello")
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run_by(name, main)


@pytest.mark.spec("LOOP-2")
@pytest.mark.parametrize("name", RUNNERS)
def test_cancelled_while_it_opens_or_is_open_it_closes(
    program: FastAgent, name: RunnerName
) -> None:
    async def main() -> None:
        for steps in range(4):
            opened = asyncio.Event()

            async def hold(opened: asyncio.Event) -> None:
                async with program.run():
                    opened.set()
                    await asyncio.Event().wait()

            holding = asyncio.create_task(hold(opened))
            for _ in range(steps):
                await asyncio.sleep(0)
            if steps == 3:
                await opened.wait()
            holding.cancel()
            with pytest.raises(asyncio.CancelledError):
                await holding
            await asyncio.sleep(0)  # for what it cancelled in its turn
            assert await _others() == set()

    run_by(name, main)


@pytest.mark.spec("LOOP-2")
def test_opened_and_closed_by_a_web_framework() -> None:
    program = Path(__file__).with_name("web_program.py")
    server = subprocess.Popen(
        [sys.executable, program, SERVER], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        address = f"http://127.0.0.1:{int(server.stdout.readline())}"

        def ask(agent: str) -> str:
            text = ECHO if agent == "tooled" else "hello"
            with urlopen(f"{address}/{agent}", text.encode(), timeout=PATIENCE) as answer:
                return answer.read().decode()

        with ThreadPoolExecutor(4) as clients:
            answers = list(clients.map(ask, ["fan", "tooled", "slow-one", "tooled"]))
        fan = FAN.replace("one", "slow-one").replace("two", "slow-two")
        assert answers == [fan, "heard", "hello", "heard"]
        server.send_signal(signal.SIGTERM)
        out, err = server.communicate(timeout=PATIENCE)
    finally:
        server.kill()
        server.communicate()
    assert (out, unexpected(err)) == ("closed\n", "")


@pytest.mark.spec("LOOP-4")
def test_without_asyncio_it_says_what_to_do(program: FastAgent) -> None:
    opening = program.run().__aenter__()
    with pytest.raises(RunError, match="no asyncio event loop is running") as raised:
        opening.send(None)  # as a loop of another library does
    assert raised.value.hint is not None
    assert "trio" in raised.value.hint
