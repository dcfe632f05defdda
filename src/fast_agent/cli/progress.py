"""What a person sees while an agent works: the answer as it comes, tool calls, notes."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from fast_agent.cli.report import report_note

if TYPE_CHECKING:
    from fast_agent.runtime.events import Event, Listener

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
        self._out = sys.stdout
        self._stream = stream and self._out.isatty()
        self._streamed = ""
        # Calls whose failure was told as that of the agent they were for.
        self._failed: set[str] = set()

    @property
    def listener(self) -> Listener | None:
        """What to give the agents; None where nothing is to be shown."""
        return None if self._quiet and not self._stream else self._tell

    def print_facts(self, facts: str) -> None:
        """Print the facts of the answer instead of its text."""
        click.echo(facts, file=self._out)

    def note(self, text: str) -> None:
        """Tell something a person should know."""
        if not self._quiet:
            report_note(text)

    def print_answer(self, text: str) -> None:
        """Print the answer, unless it was shown as it came."""
        if self._streamed and self._streamed.strip() == text.strip():
            click.echo("", file=self._out)
            return
        if self._streamed:
            click.echo("", file=self._out)
        click.echo(text, file=self._out)

    def _tell(self, event: Event) -> None:
        from fast_agent.runtime.events import (
            ChildFinished,
            TextStreamed,
            ToolFinished,
            ToolStarted,
            Warned,
            WorkflowAdvanced,
        )

        match event:
            case TextStreamed(origin=origin, text=text) if origin.parent_call_id is None:
                if self._stream:
                    self._streamed += text
                    click.echo(text, file=self._out, nl=False)
            case ToolStarted(origin=origin, call=call):
                self._end_line()
                arguments = _shortened(json.dumps(dict(call.arguments), ensure_ascii=False))
                self.note(f"{origin.agent}: {call.name} {arguments}")
            case ToolFinished(origin=origin, call=call, result=result) if result.is_error:
                if call.id in self._failed:
                    self._failed.remove(call.id)
                    return
                self.note(f"{origin.agent}: {call.name} failed: {_shortened(result.text)}")
            case ChildFinished(origin=origin, call_id=call_id, child=child, error=error) if (
                error is not None
            ):
                self._failed.add(call_id)
                self.note(f"{origin.agent}: agent `{child}` failed: {_shortened(error)}")
            case WorkflowAdvanced(origin=origin, kind=kind, facts=facts):
                from fast_agent.cli.workflow_line import workflow_line

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
            click.echo("", file=self._out)
        self._streamed = ""


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WIDTH else f"{line[:_WIDTH]}…"
