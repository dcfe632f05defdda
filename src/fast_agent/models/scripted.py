"""`scripted`: answers with the steps of a script, from Python or a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.errors import ModelError
from fast_agent.messages.content import TextContent
from fast_agent.messages.message import NO_CHANNELS, Message, ToolCall
from fast_agent.models.model import ModelResponse, TextDelta, ThinkingDelta
from fast_agent.models.passthrough import heard_text
from fast_agent.models.script import (
    Call,
    Choose,
    Delay,
    Fail,
    Say,
    Script,
    Together,
    as_steps,
    shortened,
)
from fast_agent.models.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fast_agent.models.model import DeltaSink, ModelRequest
    from fast_agent.models.script import Answer, Step, Stepper

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
            sees to it. Whoever made a `Script` finishes it.
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
        heard = heard_text(request.messages)
        while True:
            name, step = self._next(request, index)
            self._check(name, step, heard)
            wait = step.delay + (step.seconds if isinstance(step, Delay) else 0.0)
            if wait > 0:
                import anyio

                await anyio.sleep(wait)
            if not isinstance(step, Delay):
                break
        answer = self._script.draw(step) if isinstance(step, Choose) else step
        return _answer(answer, heard, len(request.messages), on_delta)

    def finish(self) -> None:
        """See that all steps were used.

        Raises:
            ModelError: Some were not.
        """
        self._script.finish()

    async def aclose(self) -> None:
        """See that all steps were used, once, unless the script itself failed before.

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
            return self._script.next()
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
            hint="mend the script, or what the agent is sent",
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
