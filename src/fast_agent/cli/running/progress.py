"""Progress: what a user sees of a run, and of a batch before and while it runs."""

from __future__ import annotations

import json
import os
import time
from asyncio import get_running_loop
from typing import TYPE_CHECKING, Final

from fast_agent.cli.output import report_note, standard_error, standard_output

if TYPE_CHECKING:
    from asyncio import TimerHandle
    from collections.abc import Callable, Sequence

    from fast_agent.agents.events import Event, Listener, Origin
    from fast_agent.app import FastAgent
    from fast_agent.engine.batch import BatchCounts
    from fast_agent.engine.model_requests import ModelRequests
    from fast_agent.text.json_value import JsonObject, JsonValue


_WIDTH = 100

SILENT_SECONDS = 30.0
"""After how long a model that has not begun to answer is reported."""


class Progress:
    """Shows a run: the answer on standard output, everything else on standard error.

    Standard output is what it is when this is made.

    Args:
        quiet: Show nothing but the answer.
        stream: Show the answer as it comes, where standard output is a terminal.
    """

    def __init__(self, *, quiet: bool, stream: bool) -> None:
        self._quiet = quiet
        self._out = standard_output()
        self._stream = stream and self._out.is_terminal
        self._streamed = ""
        self._unshown = _HiddenRuns()
        self._waits = _WaitNotices(self._note_apart)

    @property
    def listener(self) -> Listener | None:
        """The listener for the agents; None if nothing is shown."""
        return None if self._quiet and not self._stream else self._show_step

    def print_facts(self, facts: JsonObject) -> None:
        """Print the facts of the answer instead of its text."""
        self._out.write_facts(f"{json.dumps(facts, ensure_ascii=False)}\n")

    def note(self, text: str) -> None:
        """Show a note to the user."""
        if not self._quiet:
            report_note(text)

    def print_answer(self, text: str) -> None:
        """Print the answer, unless it was shown as it came."""
        if self._streamed and self._streamed.strip() == text.strip():
            self._out.line()
            return
        if self._streamed:
            self._out.line()
        self._out.line(text)

    def _show_step(self, event: Event) -> None:
        from fast_agent.agents.events import (
            ChildFinished,
            TextStreamed,
            ToolFinished,
            ToolStarted,
            Warned,
            WorkflowAdvanced,
        )

        self._waits.see(event)
        if self._unshown.has(event):
            return
        match event:
            case TextStreamed(origin=origin, text=text) if origin.parent_call_id is None:
                if self._stream:
                    self._streamed += text
                    self._out.write(text)
            case ToolStarted(origin=origin, call=call):
                arguments = _shortened(json.dumps(dict(call.arguments), ensure_ascii=False))
                self._note_apart(f"{origin.agent}: {call.name} {arguments}")
            case ToolFinished(origin=origin, call=call, result=result) if result.is_error:
                self.note(f"{origin.agent}: {call.name} failed: {_shortened(result.text)}")
            case ChildFinished(origin=origin, child=child, error=error) if error is not None:
                self.note(f"{origin.agent}: agent `{child}` failed: {_shortened(error)}")
            case WorkflowAdvanced(origin=origin, kind=kind, facts=facts):
                from fast_agent.agents.events import workflow_line

                self._end_line()
                line = workflow_line(kind, facts)
                if line:
                    self.note(f"{origin.agent}: {_shortened(line)}")
            case Warned(origin=origin, message=message):
                self.note(f"{origin.agent}: {message}")
            case _:
                pass

    def _note_apart(self, text: str) -> None:
        self._end_line()
        self.note(text)

    def _end_line(self) -> None:
        if self._streamed and not self._streamed.endswith("\n"):
            self._out.line()
        self._streamed = ""


class _WaitNotices:
    """Says that a model has not begun to answer, again whenever the wait has doubled.

    Args:
        report: Called with a line.
    """

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._timers: dict[str, TimerHandle] = {}

    def see(self, event: Event) -> None:
        """Take note of an event."""
        from fast_agent.agents.events import (
            ModelAnswered,
            ModelRequested,
            TextStreamed,
            TurnFinished,
        )

        match event:
            case ModelRequested(origin=origin, model=model):
                self._wait(origin, model, SILENT_SECONDS, SILENT_SECONDS)
            case TextStreamed() | ModelAnswered() | TurnFinished():
                self._end(event.origin.turn_id)
            case _:
                pass

    def _end(self, turn_id: str) -> None:
        timer = self._timers.pop(turn_id, None)
        if timer is not None:
            timer.cancel()

    def _wait(self, origin: Origin, model: str, seconds: float, whole: float) -> None:
        self._end(origin.turn_id)  # of a request that failed and is made again
        loop = get_running_loop()
        self._timers[origin.turn_id] = loop.call_later(seconds, self._late, origin, model, whole)

    def _late(self, origin: Origin, model: str, seconds: float) -> None:
        self._report(f"{origin.agent}: still waiting for `{model}`, for {seconds:g} s now")
        self._wait(origin, model, seconds, 2 * seconds)


class _HiddenRuns:
    """What is not shown of a run: runs beyond those a card wants in full, and reported failures."""

    def __init__(self) -> None:
        self._runs: set[str] = set()
        self._failed: set[tuple[str, str]] = set()

    def has(self, event: Event) -> bool:
        """Whether an event is not shown; warnings always are."""
        from fast_agent.agents.events import ChildFinished, ChildStarted, ToolFinished, Warned

        match event:
            case ChildStarted() if event.instance > event.max_display_instances:
                self._runs.add(event.call_id)
            case ChildFinished() if event.error is not None:
                # The result of the call says it again.
                self._failed.add((event.origin.turn_id, event.call_id))
            case ToolFinished() if (event.origin.turn_id, event.call.id) in self._failed:
                return True
            case _:
                pass
        return bool(self._runs) and self._is_below(event) and not isinstance(event, Warned)

    def _is_below(self, event: Event) -> bool:
        """Whether an event happened in a run that is not shown, or below it."""
        from fast_agent.agents.events import ToolStarted

        if event.origin.parent_call_id not in self._runs:
            return False
        self._runs.add(event.origin.turn_id)
        if isinstance(event, ToolStarted):
            self._runs.add(event.call.id)
        return True


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WIDTH else f"{line[:_WIDTH]}…"


LINE_SECONDS: Final = 10.0
"""How often a line is printed if standard error is not a terminal."""

_BAR: Final = 24
_CHARACTERS_PER_TOKEN: Final = 4


class BatchProgress:
    """Shows how far a batch is, on standard error.

    Args:
        quiet: Show nothing.
    """

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._terminal = standard_error().is_terminal
        self._began = time.monotonic()
        self._before: int | None = None
        self._printed = 0.0
        self._width = 0

    def show(self, counts: BatchCounts, requests: ModelRequests | None) -> None:
        """Draw the line, or print one now and then."""
        if self._quiet:
            return
        now = time.monotonic()
        if self._before is None:
            self._before, self._began = counts.ended, now
        if self._terminal:
            line = self._line(counts, requests, now)
            standard_error().rewrite_line(line.ljust(self._width), last=False)
            self._width = len(line)
        elif now - self._printed >= LINE_SECONDS and self._printed:
            report_note(self._line(counts, requests, now))
            self._printed = now
        elif not self._printed:
            self._printed = now

    def note(self, text: str) -> None:
        """Print something a user should know."""
        if self._quiet:
            return
        self.close()
        report_note(text)

    def close(self) -> None:
        """End the line."""
        if self._width:
            standard_error().line()
            self._width = 0

    def _line(self, counts: BatchCounts, requests: ModelRequests | None, now: float) -> str:
        part = counts.ended / counts.total if counts.total else 1.0
        full = int(part * _BAR)
        rate = (counts.ended - (self._before or 0)) / max(now - self._began, 0.001)
        facts = [
            f"{'█' * full}{'░' * (_BAR - full)} {counts.ended:,}/{counts.total:,}",
            f"{rate:.1f}/s",
        ]
        if rate > 0:
            facts.append(f"{_duration((counts.total - counts.ended) / rate)} left")
        if requests is not None:
            facts.append(f"{requests.tokens:,} tokens")
            if requests.nanodollars:
                facts.append(f"${requests.nanodollars / 1e9:.4f}")
        if counts.failed:
            facts.append(f"{counts.failed:,} failed")
        return " · ".join(facts)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def estimate(
    program: FastAgent, agent: str, model: str | None, messages: Sequence[str]
) -> dict[str, JsonValue]:
    """Estimate what the first request of each item costs; tools and answers come on top.

    Args:
        program: The cards and the configuration.
        agent: The agent that answers.
        model: The model over the card, or None.
        messages: What is sent.
    """
    from fast_agent.errors import FastAgentError
    from fast_agent.models.check import select_model

    config = program.load_set.cards[agent].config
    instruction = len(config.instruction or "")
    tokens = sum((len(text) + instruction) // _CHARACTERS_PER_TOKEN for text in messages)
    facts: dict[str, JsonValue] = {"input_tokens_at_least": tokens}
    try:
        selection = select_model(
            config, program.settings, os.environ, cwd=program.workspace, flag=model
        )
    except FastAgentError:
        return facts
    facts["model"] = selection.text
    price = _price(program, selection.text, tokens)
    facts["cost_at_least"] = None if price is None else price / 1e9
    return facts


def _price(program: FastAgent, model: str, tokens: int) -> int | None:
    """Return the price of input tokens in billionths of a US dollar; None where it is unknown."""
    from fast_agent.models.check import endpoint_of
    from fast_agent.models.facts import ModelFacts, facts_of, stated_facts
    from fast_agent.models.model import Usage
    from fast_agent.models.spec import parse_models

    settings = program.settings
    spec = parse_models(model, settings.model_aliases, settings.endpoints)[0]
    facts = ModelFacts(stated_facts(spec, settings))
    if spec.is_cloud and not facts.is_priced:
        facts = facts_of(endpoint_of(spec, settings, os.environ), facts.stated)
    return facts.price(Usage(input_tokens=tokens, requests=1))
