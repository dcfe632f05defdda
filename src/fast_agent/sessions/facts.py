"""Facts: what is known of a session without its events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from fast_agent.errors import SessionError
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fast_agent.trust.found_set import Provenance

_TITLE_LENGTH = 60


@frozen
class SessionSets:
    """The found sets a session was talked with, as its file remembers them.

    Args:
        root: The root it belongs to.
        digest: Of the sets; empty where there was none.
        effects: What they could do, each as a digest.
    """

    root: str
    digest: str = ""
    effects: frozenset[str] = frozenset()

    @classmethod
    def of(cls, facts: Mapping[str, str]) -> Self | None:
        """Read them from the facts of a file; None where it has none."""
        root = facts.get("root")
        effects = frozenset(facts.get("effects", "").split())
        return None if root is None else cls(root, facts.get("set", ""), effects)

    @classmethod
    def now(cls, provenance: Provenance) -> Self:
        """Return those of a run."""
        effects = frozenset(provenance.effects)
        return cls(str(provenance.root), provenance.digest, effects)

    def texts(self) -> dict[str, str]:
        """Return them as a file remembers them."""
        return {"root": self.root, "set": self.digest, "effects": " ".join(sorted(self.effects))}


@frozen(kw_only=True)
class SessionFacts:
    """What is known of a session without its events.

    Args:
        id: Its id.
        created: When it began, in seconds since the epoch.
        cwd: The directory it began in; empty where it began in none.
        parent: The session it was forked from, or None.
        brought: The found sets it was talked with; None where it is from before this was kept.
    """

    id: str
    created: float
    cwd: str
    parent: str | None = None
    brought: SessionSets | None = None

    @classmethod
    def of(cls, facts: Mapping[str, str], place: str) -> SessionFacts:
        """Return the facts a log holds.

        Args:
            facts: As the log holds them.
            place: The log, as messages name it.

        Raises:
            SessionError: They are not there.
        """
        try:
            return cls(
                id=facts["id"],
                created=float(facts["created"]),
                cwd=facts["cwd"],
                parent=facts.get("parent"),
                brought=SessionSets.of(facts),
            )
        except (KeyError, ValueError) as error:
            raise SessionError(f"session `{place}` is damaged: its metadata is missing") from error

    def texts(self) -> dict[str, str]:
        """Return the facts as a log stores them."""
        texts = {"id": self.id, "created": repr(self.created), "cwd": self.cwd}
        if self.parent is not None:
            texts["parent"] = self.parent
        return texts if self.brought is None else texts | self.brought.texts()


@frozen(kw_only=True)
class SessionSummary:
    """One line of a list of sessions.

    Args:
        id: Its id.
        title: Its title, else the start of its first message; empty without either.
        created: When it began, in seconds since the epoch.
        changed: When something last happened in it, in seconds since the epoch.
        cwd: The directory it began in; empty where it began in none.
        parent: The session it was forked from, or None.
        turns: How many turns it has.
        problem: Why it cannot be opened; None where it can.
        root: The root it belongs to; None where it is from before this was kept.
    """

    id: str
    title: str = ""
    created: float = 0.0
    changed: float = 0.0
    cwd: str = ""
    parent: str | None = None
    turns: int = 0
    problem: str | None = None
    root: str | None = None


def short_title(text: str) -> str:
    """Return the start of a first message, as the title of a session without one."""
    text = " ".join(text.split())
    short = text[:_TITLE_LENGTH]
    return short if short == text else f"{short.rstrip()}…"
