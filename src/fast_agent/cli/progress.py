"""What a person sees while an agent works: the answer as it comes, tool calls, notes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from fast_agent.cli.output import standard_output
from fast_agent.cli.report import report_note

if TYPE_CHECKING:
    from fast_agent.agents.events import Event, Listener
    from fast_agent.text.json_value import JsonObject

_WIDTH = 100


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
        self._unshown = _Unshown()

    @property
    def listener(self) -> Listener | None:
        """The listener for the agents; None if nothing is shown."""
        return None if self._quiet and not self._stream else self._tell

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

    def _tell(self, event: Event) -> None:
        from fast_agent.agents.events import (
            ChildFinished,
            TextStreamed,
            ToolFinished,
            ToolStarted,
            Warned,
            WorkflowAdvanced,
        )

        if self._unshown.has(event):
            return
        match event:
            case TextStreamed(origin=origin, text=text) if origin.parent_call_id is None:
                if self._stream:
                    self._streamed += text
                    self._out.write(text)
            case ToolStarted(origin=origin, call=call):
                self._end_line()
                arguments = _shortened(json.dumps(dict(call.arguments), ensure_ascii=False))
                self.note(f"{origin.agent}: {call.name} {arguments}")
            case ToolFinished(origin=origin, call=call, result=result) if result.is_error:
                self.note(f"{origin.agent}: {call.name} failed: {_shortened(result.text)}")
            case ChildFinished(origin=origin, child=child, error=error) if error is not None:
                self.note(f"{origin.agent}: agent `{child}` failed: {_shortened(error)}")
            case WorkflowAdvanced(origin=origin, kind=kind, facts=facts):
                from fast_agent.workflows.workflow_line import workflow_line

                self._end_line()
                line = workflow_line(kind, facts)
                if line:
                    self.note(f"{origin.agent}: {_shortened(line)}")
            case Warned(origin=origin, message=message):
                self.note(f"{origin.agent}: {message}")
            case _:
                pass

    def _end_line(self) -> None:
        if self._streamed and not self._streamed.endswith("\n"):
            self._out.line()
        self._streamed = ""


class _Unshown:
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
