"""What the console shows in other programs: the user's editor and pager."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.tui.programs import call_text, document_text, edited, page, transcript_text

if TYPE_CHECKING:
    from fast_agent.tui.console import Console


def external_editor(console: Console) -> None:
    """Edit the typed text in the user's editor."""
    console.editor.put(edited(console.editor.text))


def transcript(console: Console) -> None:
    """Show what the agent remembers in the pager."""
    agent = console.controller.instance()
    columns = console.screen.size[0]
    page(transcript_text(agent.name, agent.history, columns, console.theme))


def document(console: Console, source: str) -> None:
    """Show a document of the program in the pager."""
    page(document_text(source, console.screen.size[0], console.theme), at_end=False)


def details(console: Console) -> None:
    """Show the last tool call whole in the pager."""
    detail = console.activity.last
    if detail is None:
        console.note("no tool was called yet")
    else:
        page(call_text(detail.call, detail.result, console.theme, detail.output))
