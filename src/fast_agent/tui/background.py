"""Background work of the terminal: tasks that keys start, and the import that a model needs."""

from __future__ import annotations

from logging import getLogger
from operator import call
from typing import TYPE_CHECKING

import anyio
from anyio.to_thread import run_sync

from fast_agent.errors import FastAgentError, RunError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from anyio.abc import TaskGroup

    from fast_agent.commands.controller import ConversationController
    from fast_agent.tui.input.editor import Editor

    Work = Callable[..., Coroutine[None, None, None]]

log = getLogger(__name__)


class BackgroundTasks:
    """Starts tasks for those who run outside of any task, where none can be started, as keys do.

    Args:
        fail: Reports an error of a task.
    """

    def __init__(self, fail: Callable[[FastAgentError], None]) -> None:
        self._fail = fail
        self._due: list[tuple[Work, tuple[object, ...]]] = []
        self._is_due = anyio.Event()

    def start(self, work: Work, *arguments: object) -> None:
        """Request a task."""
        self._due.append((work, arguments))
        self._is_due.set()

    async def run(self, tasks: TaskGroup) -> None:
        """Start what is requested, until this is cancelled."""
        while True:
            await self._is_due.wait()
            self._is_due = anyio.Event()
            while self._due:
                tasks.start_soon(self._reported, *self._due.pop(0))

    async def _reported(self, work: Work, arguments: tuple[object, ...]) -> None:
        try:
            await work(*arguments)
        except FastAgentError as error:
            self._fail(error)
        except Exception as error:  # a task boundary: the conversation continues
            log.exception("a task of the terminal failed")
            self._fail(RunError(f"it failed: {type(error).__name__}: {error}"))


class ModelImport:
    """Imports what the model needs in a worker thread, once the user starts to type.

    Attributes:
        work: The import, which waits where another thread does it; None where it is done.
        through: Runs it; may keep the garbage collector away from it.
    """

    def __init__(self) -> None:
        self.work: Callable[[], None] | None = None
        self.through: Callable[[Callable[[], None]], object] = call
        self._has_begun = False

    @property
    def is_due(self) -> bool:
        """Whether it can begin and has not."""
        return self.work is not None and not self._has_begun

    async def begin(self, editor: Editor, controller: ConversationController) -> None:
        """Import, then start the servers of the agent that a message is written to.

        Args:
            editor: What is written; a command needs no servers.
            controller: The conversation.
        """
        await self.run()
        if not editor.text.startswith(("/", "!")):
            await controller.start_servers()

    async def run(self) -> None:
        """Import, unless that is done."""
        self._has_begun = True
        if self.work is not None:
            await run_sync(self.through, self.work)
            self.work = None
