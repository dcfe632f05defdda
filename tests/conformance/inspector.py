"""The command line of the MCP Inspector, tried against `fast-agent resources serve`."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.conformance.suite import MAX_SECONDS, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

PACKAGE = "@modelcontextprotocol/inspector"
VERSION = "2.12.0"
ERAS = ("legacy", "modern")
_PROGRAM = Path(sys.executable).with_name("fast-agent")
_APART = ("--instance-scope", "connection")
_SKILL = "skill://reading-tables"
_HEAD = f"{_SKILL}/SKILL.md"
_FILES = (_HEAD, f"{_SKILL}/_manifest", "skill://acme/refunds/SKILL.md")
_TEMPLATE = "skill://{name}/{+path}"


class Trial(NamedTuple):
    """A call of the Inspector.

    Args:
        arguments: What is asked.
        right: Whether its output is right.
        status: The exit status it should have.
    """

    arguments: tuple[str, ...]
    right: Callable[[str], bool]
    status: int = 0


class Inspector:
    """The Inspector's program.

    Args:
        program: Where it is.
        environ: What it runs in.
        skills: What is served.
    """

    def __init__(self, program: Path, environ: Mapping[str, str], skills: Path) -> None:
        self._program = program
        self._environ = environ
        self._serve: tuple[str | Path, ...] = (_PROGRAM, "resources", "serve", "--skills", skills)
        self._over_stdio = self._serve
        self._text = (skills / "reading-tables/SKILL.md").read_text("utf-8")

    @contextmanager
    def serving(self) -> Generator[str]:
        """Serve over HTTP, and give the address."""
        command = (*self._serve, "--transport", "http", "--port", "0")
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            try:
                yield process.stderr.readline().strip().removeprefix("serving at ")
            finally:
                process.terminate()
                process.communicate()

    def trials(self, url: str | None) -> Iterator[Callable[[], list[Outcome]]]:
        """Everything that is asked, in both eras of the protocol.

        Args:
            url: Where the server is; None to have the Inspector start one over stdio.
        """
        for era in ERAS:
            for trial in self._plan():
                yield partial(self._ask, url, era, trial)

    def _plan(self) -> Iterator[Trial]:
        yield Trial(("resources/list",), partial(_lists, "resources", "uri", _FILES))
        templates = partial(_lists, "resourceTemplates", "uriTemplate", [_TEMPLATE])
        yield Trial(("resources/templates/list",), templates)
        yield Trial(("resources/read", "--uri", _HEAD), partial(_holds, "contents", self._text))
        yield Trial(("resources/read", "--uri", "skill://none"), _silent, 1)
        yield Trial(("tools/list", "--strict"), partial(_lists, "tools", "name", ["load_skill"]))
        tool = ("tools/call", "--tool-name", "load_skill", "--tool-arg", "name=reading-tables")
        yield Trial(tool, partial(_holds, "content", self._text))
        yield Trial(("skills/list", "--verify", "--require-digests"), _verified)
        yield Trial(("skills/get", "--uri", _HEAD), _gives_entry)
        directory = ("resources/directory/read", "--uri", _SKILL)
        inside = [_HEAD, f"{_SKILL}/references"]
        yield Trial(directory, partial(_lists, "resources", "uri", inside))

    def _ask(self, url: str | None, era: str, trial: Trial) -> list[Outcome]:
        target = self._over_stdio if url is None else (url, "--transport", "http")
        patient = ("--connect-timeout", "120000")  # milliseconds; a loaded machine starts slowly
        options = ("--protocol-era", era, "--quiet", *patient, "--method", *trial.arguments)
        with tempfile.TemporaryDirectory() as home:
            done = subprocess.run(
                [self._program, "--cli", *target, *options],
                env={**self._environ, "HOME": home},
                capture_output=True,
                text=True,
                check=False,
                timeout=MAX_SECONDS,
            )
        name = f"{' '.join(trial.arguments)}, {era}"
        if done.returncode != trial.status:
            return [Outcome(name, 0, (f"exit status {done.returncode}: {done.stderr[-300:]}",))]
        if not trial.right(done.stdout):
            return [Outcome(name, 0, (f"unlike what is expected: {done.stdout[-300:]}",))]
        return [Outcome(name, 1, ())]


class AgentInspector(Inspector):
    """The same, tried against `fast-agent serve`.

    Args:
        program: Where it is.
        environ: What it runs in.
        cards: The cards of the agents that are served.
    """

    def __init__(self, program: Path, environ: Mapping[str, str], cards: Path) -> None:
        self._program = program
        self._environ = environ
        self._serve = (_PROGRAM, "serve", "--card", cards, "--no-session", *_APART)
        self._over_stdio = (sys.executable, Path(__file__).with_name("agents.py"), cards)

    def _plan(self) -> Iterator[Trial]:
        yield Trial(("tools/list", "--strict"), partial(_lists, "tools", "name", ["ann"]))
        call = ("tools/call", "--tool-name", "ann", "--tool-arg", "message=hello")
        yield Trial(call, partial(_holds, "content", "hello"))
        yield Trial(("prompts/list",), partial(_lists, "prompts", "name", ["ann_history"]))
        yield Trial(("prompts/get", "--prompt-name", "ann_history"), _gives_messages)


def _gives_messages(message: str) -> bool:
    return isinstance(json.loads(message)["messages"], list)


def _lists(key: str, field: str, wanted: Sequence[str], message: str) -> bool:
    return {one[field] for one in json.loads(message)[key]} >= set(wanted)


def _holds(key: str, text: str, message: str) -> bool:
    return json.loads(message)[key][0]["text"] == text


def _silent(message: str) -> bool:
    return not message


def _gives_entry(message: str) -> bool:
    entry = json.loads(message)["skill"]
    return entry["uri"] == _HEAD and len(entry["resources"]) == 2


def _verified(message: str) -> bool:
    reports = [json.loads(line) for line in message.splitlines()]
    return [one["outcome"] for one in reports] == ["verified", "verified"]
