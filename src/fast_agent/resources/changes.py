"""Changes of resources, and the bus that notifies sessions of them."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent.resources.uri import Uri


class Change(NamedTuple):
    """What is different now.

    Args:
        updated: Resources whose content is.
        resources: Whether the lists of resources or templates are.
        tools: Whether the list of tools, or what one says of itself, is.
        prompts: Whether the list of prompts is.
    """

    updated: frozenset[Uri] = frozenset()
    resources: bool = False
    tools: bool = False
    prompts: bool = False

    def __bool__(self) -> bool:
        return bool(self.updated) or self.resources or self.tools or self.prompts

    def __or__(self, other: Change) -> Change:
        return Change(
            self.updated | other.updated,
            self.resources or other.resources,
            self.tools or other.tools,
            self.prompts or other.prompts,
        )


class ChangeBus:
    """Hands each change to every listener, in the thread that publishes it."""

    def __init__(self) -> None:
        self._listeners: tuple[Callable[[Change], None], ...] = ()
        self._lock = Lock()

    def listen(self, listener: Callable[[Change], None]) -> Callable[[], None]:
        """Add a listener, which must return quickly and not raise.

        Returns:
            A function that removes it; calling it twice does no harm.
        """
        with self._lock:
            self._listeners = (*self._listeners, listener)

        def stop() -> None:
            with self._lock:
                self._listeners = tuple(one for one in self._listeners if one is not listener)

        return stop

    def publish(self, change: Change) -> None:
        """Notify every listener, unless nothing changed."""
        if change:
            for listener in self._listeners:
                listener(change)
