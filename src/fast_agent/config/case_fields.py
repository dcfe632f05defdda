"""The table of test files: every key of `name.test.yaml`, and the cases they make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fast_agent.schema.kinds import AnyMapping, Entry, Flag, Integer, ListOf, Number, Record, Text
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonObject

RECORDINGS: Final = "recordings"
"""Where recordings are kept next to a test file, by default."""


MAX_REPEATS: Final = 100
"""Most runs of one case."""


@frozen(kw_only=True)
class UsageBounds:
    """Upper bounds on what a case may use; None means no bound."""

    max_requests: int | None = None
    max_tool_calls: int | None = None
    max_total_tokens: int | None = None


@frozen(kw_only=True)
class Judge:
    """An agent that scores answers.

    Args:
        agent: Its name.
        criteria: What a good answer is.
        threshold: The lowest score that passes, from 0 to 1.
    """

    agent: str = ""
    criteria: str = ""
    threshold: float = 0.7


@frozen(kw_only=True)
class Expectation:
    """What is expected of a case; None and empty lists expect nothing.

    Args:
        text: The whole answer.
        contains: Texts the answer holds.
        lacks: Texts it does not hold.
        matches: Patterns found in it.
        json_schema: JSON Schema of the answer, which is JSON.
        stop_reason: Why the answer ended.
        calls: The tool calls made by all agents, in any order.
        workflow: What the record of the workflow holds, such as the route.
        usage: Most that is used.
        error: A part of the error the case ends with.
        judge: The agent that scores the last answer.
    """

    text: str | None = None
    contains: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    matches: tuple[str, ...] = ()
    json_schema: JsonObject | None = None
    stop_reason: str | None = None
    calls: tuple[str, ...] | None = None
    workflow: JsonObject | None = None
    usage: UsageBounds | None = None
    error: str | None = None
    judge: Judge | None = None


@frozen(kw_only=True)
class Case:
    """One case.

    Args:
        name: Its name, unique in the file.
        messages: What is sent, one after another.
        agent: Who is sent it; None is the agent the file is named after, else the default one.
        live: Whether it is run with its model every time, and not recorded.
        network: Whether a live case may use the network.
        recording: Its recording, from the file's directory; None derives one from its name.
        expect: What is expected of it.
        repeats: How often it is run where its model is asked.
        pass_rate: The share of these runs that have to pass, from 0 to 1.
        data: A file of JSON lines, from the file's directory; the case is run for each.
    """

    name: str
    messages: tuple[str, ...] = ()
    agent: str | None = None
    live: bool = False
    network: bool = False
    recording: str | None = None
    expect: Expectation = Expectation()
    repeats: int = 1
    pass_rate: float = 1.0
    data: str | None = None


_TEXTS: Final = ListOf(Text(), single=True)
_COUNT: Final = Integer(minimum=0)
_USAGE: Final = Record(
    (
        Entry("max_requests", _COUNT, "model requests", effects=()),
        Entry("max_tool_calls", _COUNT, "tool calls", effects=()),
        Entry("max_total_tokens", _COUNT, "input and output tokens together", effects=()),
    ),
    UsageBounds,
)
_SHARE: Final = Number(minimum=0, maximum=1)
_JUDGE: Final = Record(
    (
        Entry("agent", Text(), "its name, among the cards of this file", effects=(), required=True),
        Entry("criteria", Text(), "what a good answer is", effects=(), required=True),
        Entry("threshold", _SHARE, "the lowest score that passes; default: 0.7", effects=()),
    ),
    Judge,
)
_EXPECT: Final = Record(
    (
        Entry("text", Text(blank=True), "the whole answer", effects=()),
        Entry("contains", _TEXTS, "strings the answer contains", effects=()),
        Entry("lacks", _TEXTS, "strings the answer does not contain", effects=()),
        Entry("matches", _TEXTS, "regular expressions found in the answer", effects=()),
        Entry(
            "json_schema", AnyMapping(), "JSON Schema of the answer, which is then JSON", effects=()
        ),
        Entry("stop_reason", Text(), "why the answer ended, such as `endTurn`", effects=()),
        Entry("calls", _TEXTS, "the tool calls made, by all agents and in any order", effects=()),
        Entry(
            "workflow",
            AnyMapping(),
            "a part of the workflow's record, such as its route",
            effects=(),
        ),
        Entry("usage", _USAGE, "maximum usage of the whole case", effects=()),
        Entry("error", Text(), "a part of the error the case ends with", effects=()),
        Entry("judge", _JUDGE, "the agent that scores the answer", effects=()),
    ),
    Expectation,
)
_CASE: Final = Record(
    (
        Entry("name", Text(), "its name, unique in the file", effects=(), required=True),
        Entry(
            "messages",
            ListOf(Text(), single=True),
            "what is sent, one message after another",
            effects=(),
            required=True,
            spelling="message",
        ),
        Entry(
            "agent",
            Text(),
            "the agent it is sent to; default: the one the file is named after, or the default"
            " agent",
            effects=(),
        ),
        Entry(
            "live",
            Flag(),
            "whether its model is asked every time, and nothing is recorded",
            effects=(),
        ),
        Entry("network", Flag(), "whether a live case may use the network", effects=("ease",)),
        Entry(
            "recording",
            Text(),
            "its recording, from this file's directory",
            effects=("read", "write"),
        ),
        Entry("expect", _EXPECT, "what is expected", effects=()),
        Entry(
            "repeats",
            Integer(minimum=1, maximum=MAX_REPEATS),
            "how often a live case is run",
            effects=(),
        ),
        Entry(
            "pass_rate", _SHARE, "the fraction of these runs that must pass; default: 1", effects=()
        ),
        Entry(
            "data",
            Text(),
            "a file of JSON lines, from this file's directory; the case is run for each",
            effects=("read",),
        ),
    ),
    Case,
)
CASE_FILE: Final = Record(
    (
        Entry("cards", _TEXTS, "cards to load, from this file's directory", effects=("read",)),
        Entry(
            "model",
            Text(),
            "the model of every agent, overriding their cards",
            effects=("run", "read"),
        ),
        Entry("recordings", Text(), "the directory of recordings", effects=("read", "write")),
        Entry("multi_card", Flag(), "whether a card file may hold several cards", effects=()),
        Entry("cases", ListOf(_CASE), "the cases", effects=(), required=True),
    ),
    dict,
)
"""What a test file holds."""
