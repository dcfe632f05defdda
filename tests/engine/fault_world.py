"""Every type of card as a batch that is killed at the boundaries of its steps."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sqlite3
from collections import Counter
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.engine.batch_world import BatchWorld, ModelServer, Reply, call_reply, text_reply
from tests.forked import run_forked
from tests.golden.forked_commands import WATCH as FORKED_WATCH

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

_HOOK = Path(__file__).with_name("fault_hook.py")
KID = """\
---
type: agent
name: kid
description: Notes.
model: generic.m
function_tools: [tools.py:note]
---
You are kid.
"""
KID_HISTORY = "---USER\nWho are you?\n---ASSISTANT\nI am kid.\n"
PAL = """\
---
type: agent
name: pal
description: Agrees.
model: generic.m
---
You are pal.
"""
TOOLS = '''\
from fast_agent import tool


def _effect(name):
    with open("effects", "a", encoding="utf-8") as file:
        file.write(f"{name}\\n")


def note(item: str) -> str:
    """Note an item."""
    _effect(f"note {item}")
    return f"noted {item}"


@tool(repeatable=False)
def pay(item: str) -> str:
    """Pay for an item."""
    _effect(f"pay {item}")
    return f"paid {item}"


async def ask_kindly(context):
    if context.iteration == 1:
        context.message = type(context.message).user(f"{context.message.text}, please")


async def look(context):
    assert context.message.text
'''
_CHILDREN = "agents: [kid, pal]\n"
TYPES = {
    "agent": f"type: agent\nfunction_tools: [tools.py:note, tools.py:pay]\n{_CHILDREN}",
    "chain": "type: chain\nsequence: [kid, pal]\n",
    "parallel": "type: parallel\nfan_out: [kid, pal]\nfan_in: pal\n",
    "router": f"type: router\n{_CHILDREN}",
    "orchestrator": f"type: orchestrator\n{_CHILDREN}",
    "iterative_planner": f"type: iterative_planner\n{_CHILDREN}",
    "evaluator_optimizer": "type: evaluator_optimizer\ngenerator: kid\nevaluator: pal\n",
    "MAKER": "type: MAKER\nworker: kid\nk: 2\nmax_samples: 6\n",
    "smart": "type: smart\n",
    "hooks": f"type: agent\nfunction_tools: [tools.py:note]\n{_CHILDREN}tool_hooks:\n"
    "  before_llm_call: [tools.py:ask_kindly]\n  after_turn_complete: [tools.py:look]\n",
    "histories": "type: agent\nfunction_tools: [tools.py:note]\nagents: [kid]\n"
    "history_source: messages\nhistory_merge_target: messages\n",
}
"""The frontmatter of the agent `top` that answers, by its type."""

WITHOUT_MODEL = {"chain", "parallel", "evaluator_optimizer", "MAKER"}


def play(body: dict[str, Any]) -> Reply:
    """Answer as the agent whose instruction is in the request."""
    messages = body["messages"]
    system = next(_text(one) for one in messages if one["role"] == "system")
    digest = hashlib.sha256(json.dumps(messages).encode()).hexdigest()[:8]
    answered = messages[-1]["role"] == "tool"
    form: dict[str, Any] = body.get("response_format") or {}
    shape: dict[str, Any] = form.get("json_schema", {})
    if "You are kid" in system:
        if answered:
            return text_reply(f"kid {_text(messages[-1])}")
        return call_reply("note", {"item": "by kid"}, f"call-{digest}")
    if "You are pal" in system:
        rates = "rating" in json.dumps(shape)
        return text_reply('{"rating": "EXCELLENT", "feedback": ""}' if rates else "pal agrees")
    if shape:
        return text_reply(_planned(shape))
    names = {tool["function"]["name"] for tool in body.get("tools") or ()}
    if answered or not names:
        tools = [_text(one) for one in messages if one["role"] == "tool"]
        return text_reply(f"top says {' and '.join(tools) or 'so'}")
    if "smart" in names:
        arguments = {"agent_card_path": "kid.md", "message": "work"}
        return call_reply("smart", arguments, f"call-{digest}")
    reply = call_reply("note", {"item": "by top"}, f"call-{digest}")
    calls = reply[2]["choices"][0]["message"]["tool_calls"]
    for name in sorted(names - {"note"}):
        arguments = {"item": "by top"} if name == "pay" else {"message": "work"}
        function = {"name": name, "arguments": json.dumps(arguments)}
        calls.append({"id": f"{name}-{digest}", "type": "function", "function": function})
    return reply


def _planned(shape: dict[str, Any]) -> str:
    """Answer as the brain of a planner or router."""
    text = json.dumps(shape)
    tasks = [{"agent": "kid", "description": "work"}, {"agent": "pal", "description": "work"}]
    step = {"description": "all", "tasks": tasks}
    if "is_complete" in text:
        return json.dumps({**step, "is_complete": True})
    if '"steps"' in text:
        return json.dumps({"steps": [step]})
    return json.dumps({"agent": "kid", "confidence": "high", "reasoning": "."})


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else " ".join(one["text"] for one in content)


class FaultWorld:
    """A batch of one type, run in forks of one process.

    Args:
        directory: A directory for everything.
        kind: The type of the agent that answers.
        items: How many items the batch has.
    """

    def __init__(self, directory: Path, kind: str, items: int = 1) -> None:
        self._directory = directory
        self._items = items
        self._kind = kind
        model = "" if kind in WITHOUT_MODEL else "model: generic.m\n"
        self._top = f"---\n{TYPES[kind]}name: top\ndefault: true\n{model}---\nYou are top.\n"
        self._lives = 0

    def __enter__(self) -> Self:
        self.server = ModelServer(play)
        self.server.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.server.__exit__(kind, error, traceback)

    def begin(self) -> Life:
        """Begin a batch in a directory of its own."""
        self._lives += 1
        directory = self._directory / str(self._lives)
        directory.mkdir()
        world = BatchWorld(directory, self.server.url, self._items)
        (directory / "noter.md").unlink()
        (directory / "tools.py").write_text(TOOLS)
        (directory / "kid.md").write_text(KID)
        if self._kind == "histories":
            text = KID.replace("---\n", "---\nmessages: kid.past.md\n", 1)
            (directory / "kid.md").write_text(text)
            (directory / "kid.past.md").write_text(KID_HISTORY)
        (directory / "pal.md").write_text(PAL)
        (directory / "top.md").write_text(self._top)
        self.server.asked.clear()
        self.server.answered.clear()
        return Life(self, world)

    def fork(
        self,
        at: int | None,
        words: list[str],
        cwd: Path,
        *,
        cancels: bool = False,
        skew: float = 0.0,
    ) -> list[str]:
        """Run a command until it ends or is killed at a boundary; return the boundaries."""
        reached = cwd / "reached"
        fault = {"at": at, "cancels": cancels, "skew": skew, "reached": str(reached)}
        environ = {
            **{name: value for name, value in os.environ.items() if "API_KEY" not in name},
            "HOME": str(self._directory),
            "FAST_AGENT_HOME": str(self._directory / "home"),
            FORKED_WATCH: str(_HOOK),
            "FAULT": json.dumps(fault),
        }
        done = run_forked(words, cwd, environ)
        is_killed = at is not None and not cancels and done.returncode == -signal.SIGKILL
        assert is_killed or done.returncode == 0, done
        return reached.read_text().splitlines() if reached.exists() else []

    def store_of(self, world: BatchWorld) -> Path:
        """Return the file of the runs of a batch."""
        output = str(world.output.absolute())
        name = hashlib.sha256(output.encode()).hexdigest()[:10]
        return self._directory / "home/runs" / f"{name}.sqlite"


@dataclass(slots=True)
class Counts:
    """What kills of batches led to.

    Args:
        kills: How often a process was killed.
        results: How many runs were answered.
        wrong: Answers that are not those of a run that nobody killed.
        repeated: Model requests that were asked again though their answer was kept.
        in_flight: Model requests that were asked again since nobody had their answer.
        twice: Effects of repeatable tools that happened twice.
        too_often: Effects that happened more often than is promised.
    """

    kills: int = 0
    results: int = 0
    wrong: int = 0
    repeated: int = 0
    in_flight: int = 0
    twice: int = 0
    too_often: int = 0

    def add(self, other: Counts) -> None:
        """Add other counts to these."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))


class Life:
    """One batch, through all lives of its process.

    Args:
        faults: Where it runs.
        world: Its directory.
    """

    def __init__(self, faults: FaultWorld, world: BatchWorld) -> None:
        self._faults = faults
        self._world = world
        self._begun: Counter[str] = Counter()
        self.kills = 0

    def live(self, at: int | None = None, skew: float = 0.0) -> list[str]:
        """Run the batch until it is killed at a boundary, or ends; return the boundaries.

        Args:
            at: The boundary; None for none.
            skew: By how many seconds the clock is wrong.
        """
        reached = self._faults.fork(at, self._words, self._world.directory, skew=skew)
        if len(reached) == at:
            self.kills += 1
            self._begun.update(self._rows("kind, count(*)", "state=0 GROUP BY kind"))
        return reached

    def cancel(self, at: int) -> None:
        """Run the batch until its runs are cancelled at a boundary, and resume them."""
        self._faults.fork(at, self._words, self._world.directory, cancels=True)
        rows = self._world.rows()
        if all(row["ok"] for row in rows):
            return  # it was cancelled after its last step
        assert [row["error"]["kind"] for row in rows] == ["Cancelled"], rows
        self.kills += 1
        # A step that is cancelled has no answer, and may have had its effect.
        self._begun.update(self._rows("kind, count(*)", "state IN (0, 3) GROUP BY kind"))
        batch = self._faults.store_of(self._world).stem
        words = ["runs", "resume", batch, "--trust", "--quiet"]
        self._faults.fork(None, words, self._world.directory)

    @property
    def _words(self) -> list[str]:
        return [
            *("batch", "kid.md", "pal.md", "top.md", "-c", "fastagent.config.yaml", "--trust"),
            *("--input", "in.jsonl", "--output", "out.jsonl", "--quiet", "--concurrency", "4"),
        ]

    def outputs(self) -> list[object]:
        """Return the answers."""
        rows = self._world.rows()
        assert all(row["ok"] for row in rows), rows
        return [row["output"] for row in rows]

    def effects(self) -> Counter[str]:
        """Count the effects of the tools."""
        return self._world.effects()

    def requests(self) -> int:
        """Count the model requests that were asked."""
        return sum(self._faults.server.asked.values())

    def counts(self, expected: list[object], effects: Counter[str]) -> Counts:
        """Compare the batch with one that nobody killed.

        Args:
            expected: The answers of that one.
            effects: The effects of its tools.
        """
        answered = self._rows("kind, count(*)", "kind='model' AND state=1 GROUP BY kind")["model"]
        again = self.requests() - answered
        outputs = self.outputs()
        counts = Counts(self.kills, len(outputs))
        for output, wanted in zip(outputs, expected, strict=True):
            # A tool that must not be repeated says so to the model instead.
            reported = "was interrupted and is not repeated"
            counts.wrong += output != wanted and reported not in str(output)
        counts.repeated = max(0, again - self._begun["model"])
        counts.in_flight = again - counts.repeated
        more = self.effects() - effects
        paid = sum(count for name, count in more.items() if name.startswith("pay"))
        counts.twice = more.total() - paid
        counts.too_often = paid + max(0, counts.twice - self._begun["tool"])
        return counts

    def _rows(self, columns: str, where: str) -> Counter[str]:
        connection = sqlite3.connect(self._faults.store_of(self._world))
        try:
            query = f"SELECT {columns} FROM step WHERE {where}"
            return Counter(dict(connection.execute(query).fetchall()))
        finally:
            connection.close()
