"""Write golden files with the program of a commit: `python -m tests.golden.write_files --commit C`.

They are sessions, approvals, recordings, histories and dumped cards, as that program writes them
when it is used. `exchanges/files-*.yaml` say how later versions read them.
"""

from __future__ import annotations

import argparse
import json
import lzma
import shutil
import signal
import subprocess
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from tests.golden.command_talk import CommandTalk
from tests.golden.line_talk import LineTalk
from tests.golden.record import tree_of
from tests.golden.stage import Step, read_stage
from tests.golden.values import Values
from tests.golden.world import FILES, Program, ServerProcess, make_world
from tests.patience import wait_until

if TYPE_CHECKING:
    from collections.abc import Generator

CALLS = ("add", "broken", "structured")


class Writer:
    """A user of the program in a world.

    Args:
        program: The program.
        world: Where.
    """

    def __init__(self, program: Program, world: Path, talk: CommandTalk) -> None:
        self.program = program
        self.world = world
        self.sessions: dict[str, str] = {}
        self._talk = talk

    def run(self, *arguments: str, status: int = 0) -> str:
        """Run a command; returns what it printed."""
        ended, out, err = self._talk.run(list(arguments))
        assert ended == status, f"{arguments}: {err}"
        return out

    def go(self, agent: str, message: str, *options: str) -> str:
        """Send a message to an agent."""
        kept = ("--card", "kept", "--agent", agent, "--quiet")
        return self.run("go", *kept, "--message", message, *options)

    def session(self, name: str, agent: str, *messages: str) -> None:
        """Write a session of several turns."""
        first, *rest = messages
        self.go(agent, first, "--session")
        self.name(name)
        for message in rest:
            self.go(agent, message, "--resume", self.sessions[name])

    def name(self, name: str) -> None:
        """Name the newest session."""
        found: list[dict[str, Any]] = json.loads(self.run("session", "list", "--format", "json"))
        (fresh,) = {one["id"] for one in found} - {*self.sessions.values()}
        self.sessions[name] = fresh

    def path(self, name: str) -> Path:
        """Return the file of a session."""
        return self.world / "home/sessions" / f"{self.sessions[name]}.sqlite"


def write_sessions(user: Writer) -> None:
    """Write a session of every shape."""
    user.session("plain", "writer", "hello", "and again")
    user.session("thinking", "speaker", "speak")
    user.session("tools", "tools", *(f"***CALL_TOOL {name} {{}}" for name in CALLS),
                 '***CALL_TOOL add {"a": 1}\n***CALL_TOOL add {"a": 2}')  # fmt: skip
    user.session("chain", "line", "hello", "again")
    user.session("cumulative", "whole", "hello", "again")
    user.session("parallel", "both", "hello")
    user.session("router", "desk", "a speech, please")
    user.session("optimizer", "judge", "hello")
    user.session("orchestrator", "boss", "hello")
    user.session("planner", "scout", "hello")
    user.session("vote", "vote", "hello")
    user.session("started", "starter", "and in April?")
    user.session("forgetful", "formless", "hello", "again")
    calls = [f'***CALL_TOOL agent__{name} {{"message": "to {name}"}}' for name in
             ("joiner", "reader", "writer", "joiner")]  # fmt: skip
    user.session("children", "caller", *calls)
    user.session("agents", "writer", "to the writer")
    user.go("speaker", "to the speaker", "--resume", user.sessions["agents"])
    user.session("rewound", "writer", "one", "two", "three")
    user.run("session", "rewind", user.sessions["rewound"], "1")
    user.go("writer", "another two", "--resume", user.sessions["rewound"])
    user.run("session", "rename", user.sessions["rewound"], "Taken back")
    user.run("session", "fork", user.sessions["rewound"], "--at", "1")
    user.name("forked")
    user.go("writer", "in the fork", "--resume", user.sessions["forked"])


def write_ends(user: Writer) -> None:
    """Write sessions whose end is not in order: killed, torn, damaged."""
    user.session("killed", "writer", "before")
    arguments = ("go", "--card", "kept", "--agent", "sleeper", "--quiet", "--message", "never")
    command = user.program.command([*arguments, "--resume", user.sessions["killed"]])
    process = subprocess.Popen(
        command, cwd=user.world, env=user.program.environ(user.world), stderr=subprocess.DEVNULL
    )
    show = ("session", "show", user.sessions["killed"], "--format", "json")
    wait_until(lambda: len(json.loads(user.run(*show))["turns"]) == 2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    for name, number in (("torn", 1), ("damaged", 2)):
        user.sessions[name] = f"20260101-00000{number}-0000000{number}"
    for suffix in ("", "-wal"):
        shutil.copy(f"{user.path('killed')}{suffix}", f"{user.path('torn')}{suffix}")
    torn = Path(f"{user.path('torn')}-wal")
    torn.write_bytes(torn.read_bytes()[:-100])
    user.path("damaged").write_bytes(user.path("tools").read_bytes()[:10_000])


def write_editor_files(program: Program, world: Path, user: Writer) -> None:
    """Have an editor write what only editors write: permissions, approvals of skills, a session."""
    stage = read_stage("files-editor")
    command = program.command(stage.command)
    with ServerProcess(program, command, world) as server:
        talk, values = LineTalk(stage, server), Values(world, "")
        for step in WRITES:
            talk.play(step, values)
        talk.close()
    user.name("editor")


def prompt(number: int, text: str) -> Step:
    block = {"type": "text", "text": text}
    params = {"sessionId": "${session}", "prompt": [block]}
    return {"begin": "session/prompt", "id": number, "params": params}


def mode(agent: str) -> Step:
    params = {"sessionId": "${session}", "modeId": agent}
    return {"ask": "session/set_mode", "params": params}


def allow(kind: str, number: int) -> Step:
    outcome = {"outcome": "selected", "optionId": kind}
    return {"answer": {"outcome": outcome}, "then": [number]}


ASKED = {"then": [{"method": "session/request_permission"}]}
WRITES: tuple[Step, ...] = (
    {
        "ask": "initialize",
        "params": {
            "protocolVersion": 1,
            "clientCapabilities": {"elicitation": {"form": {}}},
        },
    },
    {
        "ask": "session/new",
        "params": {"cwd": "${dir}/work", "mcpServers": []},
        "keep": {"session": "result.sessionId"},
    },
    {**prompt(5, "hello"), "then": [5]},
    mode("runner"),
    {**prompt(6, '***CALL_TOOL add {"a": 1}'), **ASKED},
    allow("allow_always", 6),
    {**prompt(7, '***CALL_TOOL execute {"command": "echo never"}'), **ASKED},
    allow("reject_always", 7),
    mode("skilled"),
    {**prompt(8, '***CALL_TOOL load_skill {"name": "refunds"}'),
     "then": [{"method": "elicitation/create"}]},
    {"answer": {"action": "accept", "content": {"load": "yes"}}, "then": [8]},
    mode("waiter"),
    prompt(9, "cancelled"),
    {"tell": "session/cancel", "params": {"sessionId": "${session}"}, "then": [9]},
)  # fmt: skip


def write_others(user: Writer) -> None:
    """Write recordings, histories, approvals of cards and dumped cards."""
    for name in ("recordings", "histories"):
        (user.world / name).mkdir()
    for agent in ("writer", "line", "both", "desk", "judge", "boss", "vote"):
        user.go(agent, "hello", "--record", f"recordings/{agent}.jsonl")
    user.go("tools", '***CALL_TOOL add {"a": 1}', "--record", "recordings/tools.jsonl")
    user.go("caller", '***CALL_TOOL agent__joiner {"message": "x"}',
            "--record", "recordings/caller.jsonl")  # fmt: skip
    user.run("test", "kept", "--record")
    for suffix in ("json", "md"):
        user.go("writer", "hello\n---USER\nnot a part", "--results", f"histories/plain.{suffix}")
        user.go("tools", "***CALL_TOOL broken", "--results", f"histories/tools.{suffix}")
        user.go("speaker", "speak", "--results", f"histories/thinking.{suffix}")
        user.go("starter", "and?", "--results", f"histories/started.{suffix}")
    export = ("--format", "json", "--agent", "tools", "-o", "histories/exported.json")
    user.run("session", "export", user.sessions["tools"], *export)
    user.run("go", "--card", "kept", "--dump", "dumped/markdown")
    user.run("go", "--card", "kept", "--dump-yaml", "dumped/yaml")
    for script in (user.world / "kept").glob("script*.yaml"):  # dumps leave paths in models alone
        for form in ("markdown", "yaml"):
            shutil.copy(script, user.world / "dumped" / form)


@contextmanager
def used(program: Program) -> Generator[Writer]:
    """Start a user in a new world."""
    with ExitStack() as stack:
        world = make_world(Path(stack.enter_context(TemporaryDirectory())), {})
        process = ServerProcess(program, program.command_of_commands(), world)
        talk = CommandTalk(stack.enter_context(process))
        yield Writer(program, world, talk)
        talk.close()


def keep(user: Writer) -> None:
    """Keep what was written: sessions packed, texts without the path of the world."""
    shutil.rmtree(FILES, ignore_errors=True)
    home = user.world / "home"
    for name in user.sessions:
        for suffix in ("", "-wal"):
            path = Path(f"{user.path(name)}{suffix}")
            if path.exists() and path.stat().st_size:
                packed = FILES / f"home/sessions/{name}.sqlite{suffix}.xz"
                packed.parent.mkdir(parents=True, exist_ok=True)
                packed.write_bytes(lzma.compress(path.read_bytes(), preset=9))
    (home / "sessions.json").write_text(json.dumps(user.sessions, indent=1) + "\n", "utf-8")
    texts = [*home.glob("*.json"), *user.world.glob("kept/recordings/**/*.jsonl")]
    for name in ("recordings", "histories", "dumped"):
        texts += [path for path in (user.world / name).rglob("*") if path.is_file()]
    for path in texts:
        kept = FILES / path.relative_to(user.world)
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(path.read_text("utf-8").replace(str(user.world), "<dir>"), "utf-8")


def main() -> None:
    """Write all files."""
    parser = argparse.ArgumentParser(description="Write golden files with the program of a commit.")
    parser.add_argument("--commit", required=True)
    options = parser.parse_args()
    with tree_of(options.commit) as tree, used(Program(tree)) as user:
        write_sessions(user)
        write_editor_files(user.program, user.world, user)
        write_ends(user)
        write_others(user)
        user.run("trust", "found/.fast-agent/agent-cards/runner.md")
        user.run("trust", "kept/tools.md")
        keep(user)


if __name__ == "__main__":
    main()
