"""Conversations whose process is killed in the middle of a turn, and what continues of it."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from threading import Thread, current_thread
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from tests.engine.batch_world import BatchWorld, ModelServer, Reply
from tests.engine.fault_world import KID, PAL, TOOLS, TYPES, WITHOUT_MODEL, play
from tests.patience import wait_until

from fast_agent.engine.conversation_steps import ConversationSteps
from fast_agent.engine.run_store import new_run
from fast_agent.steps.parts import StepRedactor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


_ANSWER = "top says noted by top and kid noted by kid and pal agrees and paid by top"


class Talk:
    """A conversation at a plain terminal, with a model that kills it at one of its requests.

    Args:
        directory: Its directory.
        kind: The type of the agent that answers.
    """

    def __init__(self, directory: Path, kind: str) -> None:
        self._directory = directory
        self._process: subprocess.Popen[str] | None = None
        self._count = 0
        self.kill_at = 0
        self.server = ModelServer(self._reply)
        self.world = BatchWorld(directory, self.server.url, 0)
        (directory / "noter.md").unlink()
        model = "" if kind in WITHOUT_MODEL else "model: generic.m\n"
        top = f"---\n{TYPES[kind]}name: top\ndefault: true\n{model}---\nYou are top.\n"
        for name, text in (("kid.md", KID), ("pal.md", PAL), ("top.md", top), ("tools.py", TOOLS)):
            (directory / name).write_text(text)

    def _reply(self, body: dict[str, Any]) -> Reply:
        self._count += 1
        if self._count == self.kill_at and self._process is not None:
            self._process.send_signal(signal.SIGKILL)
        return play(body)

    def say(self, text: str, *options: str, until: str = "") -> tuple[int, str, str]:
        """Start the terminal, send it a line, and return its status and what it printed.

        Args:
            text: The line.
            options: Options of the command.
            until: What it prints in the end; it is left after that.
        """
        cards = [word for name in ("kid", "pal", "top") for word in ("--card", f"{name}.md")]
        program = str(Path(sys.executable).with_name("fast-agent"))
        # A user at a terminal: with another standard input there is no conversation.
        master, slave = pty.openpty()
        self._process = process = subprocess.Popen(
            [program, "go", *cards, "-c", "fastagent.config.yaml", "--plain", *options],
            cwd=self._directory,
            env=self.world.environ,
            stdin=slave,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        os.close(slave)
        assert process.stdout is not None
        assert process.stderr is not None
        printed: list[str] = []
        reader = Thread(target=printed.extend, args=(process.stdout,))
        reader.start()
        try:
            wait_until(lambda: process.poll() is not None or "for keys" in "".join(printed))
            os.write(master, f"{text}\n".encode())
            wait_until(lambda: process.poll() is not None or until in "".join(printed[3:]))
            os.write(master, b"\x04")
            process.wait(60)
        finally:
            os.close(master)
            process.kill()
            reader.join()
        with process.stdout, process.stderr:
            return process.returncode, "".join(printed), process.stderr.read()

    def requests(self) -> int:
        """Return how many model requests were asked."""
        return sum(self.server.asked.values())


@pytest.fixture
def talk(tmp_path: Path) -> Callable[[str], Talk]:
    return lambda kind: Talk(tmp_path, kind)


@pytest.mark.spec("RUN-14")
@pytest.mark.parametrize(
    ("kind", "kill_at", "needed", "answer"),
    [
        ("agent", 2, 5, _ANSWER),
        ("agent", 5, 5, _ANSWER),
        ("router", 2, 3, "kid noted by kid"),
        ("orchestrator", 5, 5, "top says so"),
        ("iterative_planner", 4, 5, "top says so"),
    ],
)
def test_a_turn_that_was_killed_continues_from_its_last_step(
    talk: Callable[[str], Talk], kind: str, kill_at: int, needed: int, answer: str
) -> None:
    killed = talk(kind)
    with killed.server:
        killed.kill_at = kill_at
        status, _, errors = killed.say("work", until="never")
        assert status == -signal.SIGKILL, errors
        asked = killed.requests()
        status, out, errors = killed.say("/session continue", "--resume", until=answer)
        assert status == 0, errors
        assert "the turn `work` was interrupted" in errors
        assert "0 answers" not in errors
        assert answer in out
        # Only what was on its way at the kill is asked again.
        in_flight = killed.requests() - needed
        assert 1 <= in_flight <= asked
        assert in_flight <= 2  # `kid` and `pal` may be asked at once
        # A tool that ran beside the request may have acted and not have been recorded yet.
        assert max(killed.world.effects().values()) <= 2
        again = killed.requests()
        status, out, errors = killed.say("/session continue", "--resume", until="was interrupted")
        assert "no turn of this session was interrupted" in out
        assert killed.requests() == again
    assert not list(killed.world.home.glob("**/*.steps*"))


@pytest.mark.spec("RUN-21")
def test_a_user_may_go_on_with_something_else(talk: Callable[[str], Talk]) -> None:
    killed = talk("router")
    with killed.server:
        killed.kill_at = 2
        assert killed.say("work", until="never")[0] == -signal.SIGKILL
        status, out, errors = killed.say("other", "--resume", until="kid noted by kid")
        assert status == 0, errors
        assert "kid noted by kid" in out
        _, out, _ = killed.say("/session continue", "--resume", until="was interrupted")
        assert "no turn of this session was interrupted" in out
    assert not list(killed.world.home.glob("**/*.steps*"))


class Records:
    """A database of steps that knows which thread waited for it."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}
        self.waited: list[Thread] = []

    def read_steps(self) -> dict[str, str]:
        return self.kept.copy()

    def put_steps(self, records: Mapping[str, str | None]) -> None:
        self.waited.append(current_thread())
        for name, text in records.items():
            if text is None:
                self.kept.pop(name, None)
            else:
                self.kept[name] = text


@pytest.mark.spec("RUN-20")
def test_no_event_loop_waits_for_the_database_of_the_steps() -> None:
    records = Records()
    steps = ConversationSteps(records, StepRedactor((), ""))

    async def turn() -> None:
        run = new_run("r1", "top", "{}")
        steps.store.add(run)
        await steps.store.barrier()
        assert records.kept
        steps.store.delete_run(run.id)

    anyio.run(turn)
    assert current_thread() not in records.waited
    steps.close()
    assert not records.kept
    waited = len(records.waited)
    steps.close()
    assert len(records.waited) == waited
