"""Script files: YAML or JSON with the steps of a `scripted` model, for one agent or for each."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, get_args

from fast_agent.config.layer import FileLayer, LayerReader, Place
from fast_agent.diagnostics.rules import MISSING_MODEL_FILE, WRONG_MODEL_FILE
from fast_agent.errors import ModelError
from fast_agent.messages.message import StopReason
from fast_agent.models.model import Usage
from fast_agent.models.script import Call, Choose, Delay, Fail, Say, Script, Together
from fast_agent.schema.explanation import ReadingRules
from fast_agent.schema.kinds import (
    AnyMapping,
    AnyOf,
    Entry,
    Integer,
    ListOf,
    MapOf,
    Number,
    OneOf,
    Record,
    Text,
)
from fast_agent.text.source import SourceError, read_source
from fast_agent.text.wording import closest, did_you_mean
from fast_agent.text.yaml_document import YamlError, parse_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.models.script import Answer, Step
    from fast_agent.text.json_value import Keys

_COUNT = Integer(minimum=0)
_ANSWER = (
    Entry("text", Text(blank=True), "the answer", effects=()),
    Entry(
        "pieces",
        ListOf(Text(blank=True)),
        "the pieces it is streamed in, instead of `text`",
        effects=(),
    ),
    Entry("thinking", Text(), "reasoning given before it", effects=()),
    Entry(
        "calls",
        ListOf(
            Record(
                (
                    Entry("name", Text(), "the tool", effects=(), required=True),
                    Entry("arguments", AnyMapping(), "its arguments", effects=()),
                ),
                build=Call,
            ),
            single=True,
        ),
        "a tool call, or several in one answer",
        effects=(),
        spelling="call",
    ),
    Entry(
        "fail",
        AnyOf(
            (
                Text(),
                Record(
                    (
                        Entry("message", Text(), "what went wrong", effects=(), required=True),
                        Entry("hint", Text(), "what to do", effects=()),
                    ),
                    build=Fail,
                ),
            )
        ),
        "an error instead of an answer",
        effects=(),
    ),
    Entry("stop_reason", OneOf(get_args(StopReason)), "why the answer ended", effects=()),
    Entry(
        "usage",
        Record(
            (
                Entry("input_tokens", _COUNT, "tokens sent", effects=()),
                Entry("output_tokens", _COUNT, "tokens generated", effects=()),
            ),
            build=Usage,
        ),
        "what it used",
        effects=(),
    ),
)
_STEP = Record(
    (
        *_ANSWER,
        Entry(
            "choose",
            ListOf(
                Record(
                    (Entry("weight", Number(above=0), "how often", effects=()), *_ANSWER),
                    build=dict,
                )
            ),
            "answers to draw one of",
            effects=(),
        ),
        Entry(
            "expect",
            AnyOf(
                (
                    Text(),
                    Record((Entry("regex", Text(), "a pattern", effects=(), required=True),), dict),
                )
            ),
            "what the request must hold",
            effects=(),
        ),
        Entry("delay", Number(minimum=0), "wait before the answer, in seconds", effects=()),
        Entry(
            "repeat",
            AnyOf((Integer(minimum=1), OneOf(("forever",)))),
            "how often it answers",
            effects=(),
        ),
    ),
    build=dict,
)
_STEPS = ListOf(_STEP)
SCRIPT_FILE: Final = Record(
    (
        Entry("seed", Integer(), "seed of every choice", effects=()),
        Entry("steps", _STEPS, "steps of agents that have none of their own", effects=()),
        Entry("agents", MapOf(_STEPS), "steps by agent", effects=()),
    ),
    build=dict,
)
"""What a script file holds."""

_RULES: Final = ReadingRules(
    whole="the script",
    unknown_key=WRONG_MODEL_FILE,
    wrong_type=WRONG_MODEL_FILE,
    wrong_value=WRONG_MODEL_FILE,
    missing=WRONG_MODEL_FILE,
)
_ANSWERS = ("text", "pieces", "calls", "fail")


@dataclass(slots=True)
class ScriptBook:
    """The scripts of one file, one for each agent; agents that share one take turns with it.

    Args:
        path: The file, as it is shown to people.
        seed: Seed of every choice.
        common: Steps of agents without their own steps, and their positions.
        own: The same by agent.
    """

    path: str
    seed: int
    common: tuple[tuple[Step, str], ...]
    own: Mapping[str, tuple[tuple[Step, str], ...]]
    _scripts: dict[str | None, Script] = field(default_factory=dict[str | None, Script], init=False)

    def script_of(self, agent: str) -> Script:
        """Return the script of an agent, the same one every time.

        Raises:
            ModelError: The file has no steps for it.
        """
        key = agent if agent in self.own else None
        if key is None and not self.common:
            near = closest(agent, self.own)
            known = ", ".join(f"`{name}`" for name in self.own)
            hint = did_you_mean(near, f"it has steps for {known or 'no agent'}")
            message = f"`{self.path}` has no steps for the agent `{agent}`"
            raise _refusal([Place(self.path).problem(WRONG_MODEL_FILE, message, hint)])
        return self._script(key)

    def finish(self) -> None:
        """Check that every step was used, of agents that were never asked too.

        Raises:
            ModelError: Some were not; the message lists them.
        """
        keys = (*self.own, None) if self.common else tuple(self.own)
        left = [step for key in keys for step in self._script(key).unused()]
        if left:
            raise ModelError(
                f"`{self.path}` was not used up: " + "; ".join(left),
                hint="the conversation ended earlier than the script expects",
            )

    def _script(self, key: str | None) -> Script:
        script = self._scripts.get(key)
        if script is None:
            steps = self.common if key is None else self.own[key]
            script = self._scripts[key] = Script(
                tuple(step for step, _ in steps),
                label=f"`{self.path}`",
                seed=f"{self.seed}:{key or ''}",
                places=tuple(place for _, place in steps),
            )
        return script


def read_script_file(
    path: Path, *, shown: str | None = None, seed: int | None = None
) -> ScriptBook:
    """Read a script file.

    Args:
        path: The file; JSON is YAML too.
        shown: How it is called in messages; its path when None.
        seed: Seed of every choice, instead of the file's own.

    Raises:
        ModelError: It cannot be read, or something in it is wrong; `diagnostics` holds every
            problem with its place.
    """
    layer = _open(path, str(path) if shown is None else shown)
    reader = LayerReader(layer, path.parent, None, _RULES)
    tree = reader.tree(SCRIPT_FILE, layer.document.value)
    if reader.problems:
        raise _refusal(reader.problems)
    problems: list[Diagnostic] = []
    maker = _StepMaker(layer, problems)
    steps = maker.steps(tree.get("steps", ()), ("steps",))
    agents = {
        name: maker.steps(given, ("agents", name)) for name, given in tree.get("agents", {}).items()
    }
    if not problems and not steps and not any(agents.values()):
        maker.problem((), "the script has no steps", "write `steps:` or `agents:`")
    if problems:
        raise _refusal(problems)
    return ScriptBook(layer.path, tree.get("seed", 0) if seed is None else seed, steps, agents)


def _open(path: Path, shown: str) -> FileLayer:
    try:
        source = read_source(path, shown=shown)
        return FileLayer(source, parse_yaml(source.text), path.parent)
    except SourceError as error:
        rule = MISSING_MODEL_FILE if error.reason == "missing" else WRONG_MODEL_FILE
        message = f"the script `{shown}` cannot be read: {error.message}"
        problem = Place(shown, error.span).problem(rule, message, error.hint)
        raise _refusal([problem]) from error
    except YamlError as error:
        problems = [
            Place(shown, one.span).problem(WRONG_MODEL_FILE, one.message, one.hint)
            for one in error.problems
        ]
        raise _refusal(problems) from error


def _refusal(problems: Sequence[Diagnostic]) -> ModelError:
    first = problems[0]
    more = "" if len(problems) == 1 else f" (and {len(problems) - 1} more)"
    return ModelError(f"{first.message}{more}", hint=first.hint, diagnostics=problems)


class _StepMaker:
    """Makes steps of checked values, and sees that the keys of each go together."""

    def __init__(self, layer: FileLayer, problems: list[Diagnostic]) -> None:
        self._layer = layer
        self._problems = problems

    def problem(self, at: Keys, message: str, hint: str | None = None) -> None:
        self._problems.append(self._layer.place(at).problem(WRONG_MODEL_FILE, message, hint))

    def steps(self, given: Sequence[Mapping[str, Any]], at: Keys) -> tuple[tuple[Step, str], ...]:
        made: list[tuple[Step, str]] = []
        for index, values in enumerate(given):
            here = (*at, index)
            step = self._step(values, here)
            if step is None:
                continue
            if step.times is None and index + 1 < len(given):
                self.problem(here, "nothing after a step that repeats for ever is used")
            owner = f" of `{at[1]}`" if len(at) > 1 else ""
            line = self._layer.document.span_of(here).start.line
            made.append((step, f"step {index + 1}{owner} (line {line})"))
        return tuple(made)

    def _step(self, values: Mapping[str, Any], at: Keys) -> Step | None:
        repeat = values.get("repeat", 1)
        common: dict[str, Any] = {
            "expect": self._expected(values.get("expect"), at),
            "delay": float(values.get("delay", 0)),
            "times": None if repeat == "forever" else repeat,
        }
        if "choose" not in values:
            if "delay" in values and not any(key in values for key in _ANSWERS):
                return Delay(common.pop("delay"), **common)
            return self._answer(values, at, common)
        if any(key in values for key in _ANSWERS):
            self.problem(at, "a step with `choose` has no answer of its own")
            return None
        options = [
            (float(option.get("weight", 1)), self._answer(option, (*at, "choose", index), {}))
            for index, option in enumerate(values["choose"])
        ]
        drawn = tuple((weight, answer) for weight, answer in options if answer is not None)
        if not options:
            self.problem(at, "`choose` has nothing to choose from")
        return Choose(drawn, **common) if drawn else None

    def _answer(self, values: Mapping[str, Any], at: Keys, common: dict[str, Any]) -> Answer | None:
        pieces: list[str] = values.get("pieces", [])
        calls = tuple(Call(**call) for call in values.get("calls", ()))
        speaks = "text" in values or bool(pieces)
        if "text" in values and pieces:
            self.problem(at, "a step has either `text` or `pieces`")
            return None
        if "fail" in values:
            if speaks or calls:
                self.problem(at, "a step that fails cannot have an answer as well")
                return None
            fail = values["fail"]
            return Fail(fail, **common) if isinstance(fail, str) else Fail(**fail, **common)
        if not speaks and not calls:
            self.problem(at, "a step has no answer", "give it `text`, `call`, `fail` or `choose`")
            return None
        extra = {key: values[key] for key in ("thinking", "stop_reason") if key in values}
        if "usage" in values:
            extra["usage"] = Usage(**values["usage"], requests=1)
        text = "".join(pieces) if pieces else values.get("text", "")
        say = Say(text, tuple(pieces), **extra, **({} if calls else common))
        if not calls:
            return say
        if len(calls) == 1 and not speaks and not extra:
            return Call(calls[0].name, calls[0].arguments, **common)
        return Together(calls, say, **common)

    def _expected(self, expect: Any, at: Keys) -> str | re.Pattern[str] | None:
        if expect is None or isinstance(expect, str):
            return expect
        try:
            return re.compile(expect["regex"])
        except re.error as error:
            self.problem((*at, "expect"), f"`regex` is not a valid regular expression: {error}")
            return None
