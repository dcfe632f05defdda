"""The `scripted` model, and the scripts it answers from, step by step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from fast_agent.errors import ModelError
from fast_agent.messages.message import NO_CHANNELS, NOTHING, Message, TextContent, ToolCall
from fast_agent.models.model import ModelResponse, TextDelta, ThinkingDelta, Usage
from fast_agent.models.offline import last_text
from fast_agent.steps.steps import here
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable, Sequence
    from random import Random

    from fast_agent.models.model import DeltaSink, ModelRequest
    from fast_agent.text.json_value import JsonObject


@frozen(kw_only=True)
class _Step:
    """What every step may have.

    Args:
        expect: A text, or a pattern, that what is asked must hold.
        delay: Wait before the answer, in seconds.
        times: How often the step answers; None for ever.
    """

    expect: str | re.Pattern[str] | None = None
    delay: float = 0.0
    times: int | None = 1


@frozen
class Say(_Step):
    """Answer with text.

    Args:
        text: The answer.
        pieces: The pieces it is streamed in; they make up `text`. Empty streams it whole.
        thinking: Reasoning given before it.
        stop_reason: Why the answer ended; None for the usual reason.
        usage: What it used; None counts a token for four characters.
    """

    text: str
    pieces: tuple[str, ...] = ()
    thinking: str = ""
    stop_reason: str | None = None
    usage: Usage | None = None

    def __post_init__(self) -> None:
        if self.pieces and "".join(self.pieces) != self.text:
            raise ValueError("the pieces of a step do not make up its text")


@frozen
class Call(_Step):
    """Call a tool.

    Args:
        name: The tool, as the model sees it.
        arguments: Its arguments.
    """

    name: str
    arguments: JsonObject = NOTHING


@frozen
class Together(_Step):
    """Make several calls in one answer, with an optional text before them."""

    calls: tuple[Call, ...]
    say: Say | None = None


@frozen
class Fail(_Step):
    """Fail as a model does, with a `ModelError`."""

    message: str
    hint: str | None = None


@frozen
class Delay(_Step):
    """Wait; the next step answers."""

    seconds: float


@frozen
class Choose(_Step):
    """Answer with one of several steps, drawn by weight with the script's seed."""

    options: tuple[tuple[float, Answer], ...]


Answer: TypeAlias = "Say | Call | Together | Fail"
Step: TypeAlias = "Say | Call | Together | Fail | Delay | Choose"
Stepper: TypeAlias = "Callable[[ModelRequest, int], Step | str]"
"""A function that returns the step for the request of this index, from 0; a string is an answer."""


@dataclass(slots=True)
class Script:
    """Steps, and how far they were used. Models that share one take turns with it.

    Args:
        steps: The steps.
        label: What it is called in messages, such as a file name.
        seed: Seed of every choice.
        places: Names of the steps for messages, such as lines of a file; else their numbers.
    """

    steps: Sequence[Step]
    label: str = "the script"
    seed: int | str = 0
    places: Sequence[str] = ()
    _at: int = field(default=0, init=False)
    _used: int = field(default=0, init=False)
    _random: Random | None = field(default=None, init=False, repr=False)
    _whole: Script | None = field(default=None, init=False, repr=False)

    def of_run(self) -> Script:
        """Return this script as the current run uses it: each run starts at its start.

        Outside of runs that are carried, and in the turns of a conversation, it is the script
        itself.
        """
        place = here()
        if place.silent:
            return self
        scripts, key = place.steps.places.scripts, f"script {id(self)}"
        if scripts is None:
            return self
        found = scripts.get(key)
        if not isinstance(found, Script):
            found = scripts[key] = Script(self.steps, self.label, self.seed, self.places)
            found.report_to(self)
        return found

    def report_to(self, whole: Script) -> None:
        """Mark the steps used here as used in another script: the one all runs share."""
        self._whole = whole

    def reach(self, at: int, used: int) -> None:
        """Count the steps that a run used, where no other run used more."""
        self._at, self._used = max((self._at, self._used), (at, used))

    def __post_init__(self) -> None:
        for index, step in enumerate(self.steps[:-1]):
            if step.times is None:
                raise ModelError(
                    f"{self.label}: nothing after {self.name_of(index)} can ever be used",
                    hint="let only the last step repeat for ever",
                )

    def next(self) -> tuple[str, Step]:
        """Take the next step.

        Returns:
            Its name for messages, and the step.

        Raises:
            ModelError: None is left.
        """
        if self._at >= len(self.steps):
            raise ModelError(
                f"{self.label} has no step left; all {len(self.steps)} were used",
                hint="add a step, or let the last one repeat",
            )
        index, step = self._at, self.steps[self._at]
        self._used += 1
        if step.times is not None and self._used >= step.times:
            self._at, self._used = index + 1, 0
        if self._whole is not None:
            self._whole.reach(self._at, self._used)
        return self.name_of(index), step

    def skip(self) -> bool:
        """Pass over the step of a request of an earlier life of the run.

        Returns:
            Whether the step answers; False where it fails.

        Raises:
            ModelError: No step is left.
        """
        step = self.next()[1]
        while isinstance(step, Delay):
            step = self.next()[1]
        return not isinstance(self.draw(step) if isinstance(step, Choose) else step, Fail)

    def draw(self, choice: Choose) -> Answer:
        """Draw one of the options of a choice."""
        if self._random is None:
            from random import Random

            self._random = Random(self.seed)  # noqa: S311 (noise for tests, not for secrets)
        weights = [weight for weight, _ in choice.options]
        return self._random.choices(choice.options, weights)[0][1]

    def unused(self) -> list[str]:
        """List the steps not used, or not as often as they should have been."""
        left: list[str] = []
        for index in range(self._at, len(self.steps)):
            times = self.steps[index].times
            used = self._used if index == self._at else 0
            if times is not None and used < times:
                many = "" if times == 1 else f" ({used} of {times} times)"
                left.append(f"{self.name_of(index)}: {describe(self.steps[index])}{many}")
        return left

    def finish(self) -> None:
        """Check that all steps were used.

        Raises:
            ModelError: Some were not; the message lists them.
        """
        left = self.unused()
        if left:
            raise ModelError(
                f"{self.label} was not used up: " + "; ".join(left),
                hint="the conversation ended earlier than the script expects",
            )

    def name_of(self, index: int) -> str:
        """Name a step for messages."""
        return self.places[index] if index < len(self.places) else f"step {index + 1}"


def describe(step: Step) -> str:
    """Describe a step in a few words."""
    match step:
        case Say():
            return f"says `{shortened(step.text)}`"
        case Call():
            return f"calls `{step.name}`"
        case Together():
            return f"calls {', '.join(f'`{call.name}`' for call in step.calls)}"
        case Fail():
            return f"fails with `{shortened(step.message)}`"
        case Delay():
            return f"waits {step.seconds:g} seconds"
        case Choose():
            return f"chooses one of {len(step.options)}"


def shortened(text: str, limit: int = 60) -> str:
    """Cut a string to one line for a message."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def as_steps(steps: Iterable[Step | str]) -> tuple[Step, ...]:
    """Make steps of a mixture of steps and texts to say."""
    return tuple(Say(step) if isinstance(step, str) else step for step in steps)


__all__ = [
    "Call",
    "Choose",
    "Delay",
    "Fail",
    "Say",
    "Script",
    "ScriptedModel",
    "Together",
]

_SHOWN = 300


class ScriptedModel:
    """Answers each request with the next step of a script; offline and the same in every run.

    Args:
        script: Steps (a text is said), a function that gives the step for a request and its index,
            or a `Script` that other models may share. Steps given here must all be used: `aclose`
            checks it. The owner of a `Script` finishes it.
        name: The spec it was made from.
        seed: Seed of every `Choose`, where `script` is steps.
    """

    def __init__(
        self,
        script: Script | Iterable[Step | str] | Stepper,
        name: str = "scripted",
        *,
        seed: int = 0,
    ) -> None:
        self._name = name
        self._stepper: Stepper | None = None
        self._script = Script(())
        self._owns = False
        self._failed = False
        self._requests = 0
        if isinstance(script, Script):
            self._script = script
        elif callable(script):
            self._stepper = script
        else:
            self._script = Script(as_steps(script), seed=seed)
            self._owns = True

    @property
    def name(self) -> str:
        """The spec it was made from."""
        return self._name

    async def request(
        self, request: ModelRequest, on_delta: DeltaSink | None = None
    ) -> ModelResponse:
        """Answer with the next step.

        Raises:
            ModelError: The step is a `Fail`, what it expects was not asked, or none is left.
        """
        index = self._requests
        self._requests += 1
        heard = last_text(request.messages)
        while True:
            name, step = self._next(request, index)
            self._check(name, step, heard)
            wait = step.delay + (step.seconds if isinstance(step, Delay) else 0.0)
            if wait > 0:
                import anyio

                await anyio.sleep(wait)
            if not isinstance(step, Delay):
                break
        answer = self._script.of_run().draw(step) if isinstance(step, Choose) else step
        return _answer(answer, heard, len(request.messages), on_delta)

    def skip(self) -> bool:
        """Pass over a request of an earlier life of the run.

        Returns:
            Whether its step answers; True for a function, which is not called.

        Raises:
            ModelError: No step is left.
        """
        self._requests += 1
        return self._stepper is not None or self._script.of_run().skip()

    def finish(self) -> None:
        """Check that all steps were used.

        Raises:
            ModelError: Some were not.
        """
        self._script.finish()

    async def aclose(self) -> None:
        """Check that all steps were used, once, unless the script itself failed before.

        Raises:
            ModelError: Some were not.
        """
        owns, self._owns = self._owns, False
        if owns and not self._failed:
            self.finish()

    def _next(self, request: ModelRequest, index: int) -> tuple[str, Step]:
        if self._stepper is not None:
            step = self._stepper(request, index)
            return f"request {index + 1}", Say(step) if isinstance(step, str) else step
        try:
            return self._script.of_run().next()
        except ModelError:
            self._failed = True
            raise

    def _check(self, name: str, step: Step, heard: str) -> None:
        wanted = step.expect
        if wanted is None:
            return
        if wanted in heard if isinstance(wanted, str) else wanted.search(heard):
            return
        self._failed = True
        word = "a text with" if isinstance(wanted, str) else "a match for"
        pattern = wanted if isinstance(wanted, str) else wanted.pattern
        raise ModelError(
            f"{self._script.label}: {name} expects {word} `{shortened(pattern, _SHOWN)}`, "
            f"but was asked `{shortened(heard, _SHOWN)}`",
            hint="correct the script, or what the agent is sent",
        )


def _answer(step: Answer, heard: str, position: int, on_delta: DeltaSink | None) -> ModelResponse:
    match step:
        case Fail():
            raise ModelError(step.message, hint=step.hint)
        case Say():
            say, calls = step, ()
        case Call():
            say, calls = None, (step,)
        case Together():
            say, calls = step.say, step.calls
    made = tuple(
        ToolCall(f"call_{position}_{number}", call.name, call.arguments)
        for number, call in enumerate(calls, 1)
    )
    text = "" if say is None else say.text
    thinking = "" if say is None else say.thinking
    if on_delta is not None:
        if thinking:
            on_delta(ThinkingDelta(thinking))
        for piece in say.pieces if say is not None and say.pieces else (text,):
            if piece:
                on_delta(TextDelta(piece))
    reason = None if say is None else say.stop_reason
    message = Message(
        "assistant",
        (TextContent(text),) if text or not made else (),
        made,
        channels={"reasoning": (TextContent(thinking),)} if thinking else NO_CHANNELS,
        stop_reason=reason or ("toolUse" if made else "endTurn"),
    )
    said = len(text) + len(thinking) + sum(len(call.name) for call in made)
    usage = None if say is None else say.usage
    return ModelResponse(message, usage or Usage((len(heard) + 3) >> 2, (said + 3) >> 2, 0, 0, 1))
