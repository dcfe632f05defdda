"""Merging messages into a history file that several processes may write."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fast_agent.errors import HistoryError
from fast_agent.messages.call_ids import CallIds
from fast_agent.messages.file import change_history
from fast_agent.text.file_lock import FileLock

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from fast_agent.messages.message import Message
    from fast_agent.messages.transcript import Transcript

WAIT = 30.0
"""How long to wait for another process that merges into the same file, in seconds."""


def merge_into(path: Path, messages: Iterable[Message], *, wait: float = WAIT) -> None:
    """Add messages to the end of a history file as one block; what others add meanwhile is kept.

    It reads and writes the whole file and waits for the disk; call it from a worker thread.

    Args:
        path: The file; made where it is missing. Its name chooses the format. A link is followed.
        messages: What to add. Call ids that are in use in the file are given new ones.
        wait: How long to wait for another process, in seconds.

    Raises:
        HistoryError: The file cannot be read or written, something in it is wrong, or another
            process holds it too long; it is then as it was.
    """
    target = path.resolve()
    lock = FileLock(target.with_name(f".{target.name}.lock"))
    try:
        taken = lock.take(wait=wait)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise HistoryError(f"history `{path}` cannot be merged into: {reason}") from error
    if not taken:
        raise HistoryError(
            f"history `{path}` has been in use by process {lock.holder()} for {wait:g} s",
            hint="end that process, or give the card a file of its own",
        )
    try:
        change_history(target, lambda before: _with(before, messages))
    finally:
        lock.release()


def _with(before: Transcript, messages: Iterable[Message]) -> Transcript:
    ids = CallIds()
    ids.note(before.messages)
    return replace(before, messages=(*before.messages, *ids.own_block(messages)))
