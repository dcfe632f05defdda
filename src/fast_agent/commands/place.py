"""Places in the file system that a person named in a command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.errors import RunError

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.commands.controller import ConversationController


def named_path(text: str, controller: ConversationController) -> Path:
    """Return the path a user named, absolute.

    Args:
        text: A path relative to the workspace, or one from `~` or `/` on.
        controller: The conversation.

    Raises:
        RunError: It is not a path.
    """
    from pathlib import Path

    if not text.strip() or not text.isprintable():
        raise RunError("that is not a path", hint="name a file or a directory")
    path = Path(text)
    if text == "~" or text.startswith("~/"):
        path = path.expanduser()
    return controller.workspace / path
