"""Steps of a conversation: each turn a user starts is a durable run until it ended.

The session's log says what was said; the steps beside it say what was asked and answered, so that a
turn whose process was killed continues with the first question that has no answer. Once a turn has
ended, its steps are deleted: the log has what came of it.
"""

from __future__ import annotations

import json
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar
from uuid import uuid4

from anyio.to_thread import run_sync

from fast_agent.engine.run_rows import BEGUN, DONE, RunRow
from fast_agent.engine.run_steps import DurableSteps
from fast_agent.engine.run_store import IN_MEMORY, RunStore, StoreError, new_run
from fast_agent.errors import SessionError
from fast_agent.messages.json_message import message_from_wire, message_to_wire
from fast_agent.sessions.session import InterruptedTurn
from fast_agent.steps.parts import Parts
from fast_agent.steps.steps import Key, NullSteps, Places, entered, here, turn_id

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from fast_agent.engine.run_rows import StepRow
    from fast_agent.messages.message import Message
    from fast_agent.sessions.log import StepRecords
    from fast_agent.steps.parts import StepRedactor
    from fast_agent.steps.steps import Work
    from fast_agent.text.json_value import JsonValue

    StepWrite: TypeAlias = tuple[Key, str, int, str | None, str | None]

T = TypeVar("T")

_RUN: Final = "run "
_STEP: Final = "step "
_PART: Final = "part "
_ENCODER: Final = json.JSONEncoder()
_SORTED_ENCODER: Final = json.JSONEncoder(sort_keys=True)
_COMPARED_MESSAGES: Final = 4
"""How many of the last messages of a request are compared when a turn continues."""
_REMEMBERED_MESSAGES: Final = 64
"""For so many messages the digest is remembered, since each is named by several requests."""


class ConversationSteps(NullSteps):
    """Carries the turns of one session.

    Args:
        place: The file of its steps, made with the first turn and deleted with the last; or their
            records in a database.
        redactor: What must not be written.

    Raises:
        SessionError: The records cannot be read.
    """

    def __init__(self, place: Path | StepRecords, redactor: StepRedactor) -> None:
        self._redactor = redactor
        self._opened: RunStore | None = None
        self._path, self._records = (place, None) if isinstance(place, Path) else (IN_MEMORY, place)
        if self._records is not None:
            # Now, since a session is opened where waiting for a database blocks nothing.
            kept = self._records.read_steps()
            if kept:
                self._opened = _SharedStore(self._records, kept)
        self._shared = _LastParts(redactor, self._keep)
        self._taken_up: RunRow | None = None
        self._parts: dict[str, JsonValue] = {}

    @property
    def interrupted(self) -> InterruptedTurn | None:
        """The turn that was under way when the process of the session was killed, or None.

        Raises:
            StoreError: Its steps cannot be read.
        """
        if not self._is_there:
            return None
        rows = [*self.store.runs(state="queued")]
        if not rows:
            return None
        row, message = rows[-1], _message(rows[-1])
        kept = [step for step in self.store.steps(row.id) if step.state == DONE]
        places = Places(self, self._shared)
        with places.turn(row.agent, message, None):
            of_turn = turn_id(row.id, places.here().path)
        counted = sum(step.key.kind in {"model", "tool"} for step in kept)
        return InterruptedTurn(of_turn, row.agent, message, counted)

    @property
    def _is_there(self) -> bool:
        """Whether there may be steps."""
        return self._opened is not None or (self._records is None and self._path.exists())

    def take_up(self) -> None:
        """Treat the next turn with the interrupted turn's message as that turn."""
        rows = [*self.store.runs(state="queued")]
        self._taken_up = rows[-1] if rows else None

    def turn(
        self, agent: str, message: Message, call_id: str | None
    ) -> AbstractContextManager[None]:
        """Enter a turn; one that nothing else started is a separate run."""
        steps = here().steps
        if isinstance(steps, DurableSteps):
            return steps.turn(agent, message, call_id)
        return self._run(agent, message, call_id)

    async def enter(self, agent: str) -> None:
        """Start a turn; see `Steps.enter`."""
        steps = here().steps
        if isinstance(steps, DurableSteps):
            await steps.enter(agent)

    def close(self) -> None:
        """Close the file, and delete it where no turn is left in it; safe to call twice."""
        store, self._opened = self._opened, None
        if store is None:
            return
        is_left = any(True for _ in store.runs())
        store.close()
        if not is_left and self._records is None:
            with suppress(OSError):
                delete_steps(self._path)

    @contextmanager
    def _run(self, agent: str, message: Message, call_id: str | None) -> Generator[None]:
        kept = _TurnStore(self, run := self._begun(agent, message))
        steps = DurableSteps(
            kept, run, self._redactor, _EVERY_REQUEST, parts=self._shared, is_shielded=False
        )
        steps.places.scripts = None  # a script continues from turn to turn
        try:
            with entered(steps.top), steps.scope, steps.turn(agent, message, call_id):
                yield
            if steps.stopped is not None:
                raise steps.stopped
        finally:
            # However it ended, the log of the session has it: only a kill leaves its steps.
            with suppress(StoreError):
                kept.delete()

    def _begun(self, agent: str, message: Message) -> RunRow:
        taken, self._taken_up = self._taken_up, None
        _, written = self._redactor.written(message_to_wire(message), _ENCODER)
        if taken is not None and (taken.agent, taken.input) == (agent, written):
            found = self.store.take("session")
            if found is not None:
                return found
        if self._is_there:
            for row in [*self.store.runs(state="queued")]:
                self.store.delete_run(row.id)  # the user started something else
        return new_run(uuid4().hex, agent, written)

    def _keep(self, digest: str, value: JsonValue) -> None:
        self._parts[digest] = value

    def part(self, digest: str) -> JsonValue:
        """Return a piece of an answer; see `Steps.part`."""
        found = self._parts.get(digest)
        return self.store.part(digest) if found is None else found

    def write_parts(self) -> None:
        """Write the pieces that were named since they were written last."""
        for digest, value in self._parts.items():
            self.store.store_part(digest, value)
        self._parts.clear()

    @property
    def store(self) -> RunStore:
        """The file of the steps."""
        if self._opened is not None and self._opened.failure is not None:
            # What was lost is written again with the next turn.
            self._opened.close()
            self._opened, self._shared = None, _LastParts(self._redactor, self._keep)
        if self._opened is None and self._records is not None:
            self._opened = _SharedStore(self._records, {})
        if self._opened is None:
            name = sha256(self._path.name.encode()).hexdigest()[:10]
            self._opened = RunStore(self._path, name)
            # The session is locked: whatever was under way has no process any more.
            self._opened.recover()
        return self._opened


class _SharedStore(RunStore):
    """The steps of a session that any of several servers may continue.

    It is in memory; what is written is gathered, and goes to the database with the next `barrier`.

    Args:
        records: Where it is kept.
        kept: What is kept there.
    """

    def __init__(self, records: StepRecords, kept: Mapping[str, str]) -> None:
        super().__init__(IN_MEMORY, "session")
        self._records = records
        self._changed: dict[str, str | None] = {}
        self._names: dict[str, list[str]] = {}
        self._count = 0
        for name, text in kept.items():
            if name.startswith(_PART):
                super().store_part(name.removeprefix(_PART), json.loads(text))
        runs = {name: text for name, text in kept.items() if name.startswith(_RUN)}
        for name, text in runs.items():
            row = RunRow(*json.loads(text))
            super().add(row)
            steps = [one for one in kept if one.startswith(f"{_STEP}{row.id} ")]
            self._names[row.id] = [name, *steps]
            for number, key, *values in sorted(json.loads(kept[one]) for one in steps):
                self._count = number
                super().write_step(row, Key(*key), *values)
        self.recover()

    def add(self, run: RunRow) -> None:
        """Add a run that this process began."""
        super().add(run)
        self._change(run.id, f"{_RUN}{run.id}", list(run))

    def write_step(
        self,
        run: RunRow,
        key: Key,
        asked: str,
        state: int,
        gave: str | None = None,
        used: str | None = None,
    ) -> None:
        """Write a step, where this process still has the run; see `RunStore.write_step`."""
        super().write_step(run, key, asked, state, gave, used)
        self._count += 1
        name = f"{_STEP}{run.id} {json.dumps(key)}"
        self._change(run.id, name, [self._count, key, asked, state, gave, used])

    def store_part(self, digest: str, value: JsonValue) -> None:
        """Keep a piece, once; it stays until the session is deleted."""
        if digest not in self._known_parts:
            self._changed[f"{_PART}{digest}"] = json.dumps(value)
        super().store_part(digest, value)

    def delete_run(self, run_id: str) -> None:
        """Delete a run with its steps; the database follows with what is written next.

        The log has the turn, so what a kill leaves there is not offered again. A turn ends on the
        event loop, which must not wait for a database that is slow or away.
        """
        super().delete_run(run_id)
        self._changed.update(dict.fromkeys(self._names.pop(run_id, ())))

    def close(self) -> None:
        """Write what is left to write, and close; safe to call twice."""
        if self._changed:
            with suppress(StoreError):
                self._put_changes()
        super().close()

    async def barrier(self) -> None:
        """Wait until all that was written is in the database.

        Raises:
            StoreError: Another server took the session over, or the database stays away.
        """
        if self._changed:
            await run_sync(self._put_changes)

    async def shared(self) -> None:
        """Wait until all that was written is in the database; see `barrier`."""
        await self.barrier()

    def _change(self, run_id: str, name: str, value: JsonValue) -> None:
        self._names.setdefault(run_id, []).append(name)
        self._changed[name] = json.dumps(value)

    def _put_changes(self) -> None:
        changed, self._changed = self._changed, {}
        try:
            self._records.put_steps(changed)
        except SessionError as error:
            raise StoreError(error.message, hint=error.hint) from error


class _TurnStore:
    """The steps of one turn, written once there is an answer that a kill could lose.

    A turn of one model request writes nothing: with its answer it ends.

    Args:
        conversation: Its conversation.
        run: The turn.
    """

    def __init__(self, conversation: ConversationSteps, run: RunRow) -> None:
        self._conversation = conversation
        self._run = run
        self._waiting: list[StepWrite] = []
        self._is_there = run.attempt > 1
        self.parts: Mapping[str, JsonValue] = {}

    def steps(self, run_id: str) -> list[StepRow]:
        """Return the steps of former lives."""
        return self._conversation.store.steps(run_id) if self._is_there else []

    def write_step(
        self,
        run: RunRow,
        key: Key,
        asked: str,
        state: int,
        gave: str | None = None,
        used: str | None = None,
    ) -> None:
        """Write a step, or hold it back; see `RunStore.write_step`."""
        if not self._is_there:
            is_answered = any(
                one[2] != BEGUN and one[0].kind not in {"order", "id"} for one in self._waiting
            )
            if state != BEGUN or not (is_answered or key.kind != "model"):
                self._waiting.append((key, asked, state, gave, used))
                return
            self._write_all()
        self._conversation.write_parts()
        self._conversation.store.write_step(run, key, asked, state, gave, used)

    def _write_all(self) -> None:
        store, self._is_there = self._conversation.store, True
        store.add(self._run)
        self._conversation.write_parts()
        for key, asked, state, gave, used in self._waiting:
            store.write_step(self._run, key, asked, state, gave, used)
        self._waiting.clear()

    def flush(self) -> None:
        """Write everything to the file."""
        if self._is_there:
            self._conversation.store.flush()

    def sync(self) -> None:
        """Write everything to the disk itself."""
        if self._is_there:
            self._conversation.store.sync()

    async def barrier(self) -> None:
        """Wait until what was written outlasts this process."""
        if self._is_there:
            await self._conversation.store.barrier()

    async def shared(self) -> None:
        """Wait until what was written is where other servers continue the turn."""
        if self._is_there:
            await self._conversation.store.shared()

    def store_part(self, digest: str, value: JsonValue) -> None:
        """Keep a piece: the conversation does."""

    def part(self, digest: str) -> JsonValue:
        """Return a piece."""
        return self._conversation.part(digest)

    def delete(self) -> None:
        """Delete the turn with its steps."""
        if self._is_there:
            self._conversation.store.delete_run(self._run.id)


class _LastParts(Parts):
    """Names a conversation by its last messages, so that a turn costs the same however long it is.

    What came before them is what the session's log holds, which is read to that very point.
    """

    def _digest_of_new(self, message: Message) -> str:
        """Name a message, without keeping it: the log of the session has it."""
        if len(self._messages) >= _REMEMBERED_MESSAGES:
            self._messages.clear()
        return self._named(message_to_wire(message))

    def digest_of_conversation(self, messages: Sequence[Message]) -> str:
        """Name a conversation."""
        last = [self.digest_of_message(one) for one in messages[-_COMPARED_MESSAGES:]]
        return self._named({"count": len(messages), "last": last})

    def _named(self, value: JsonValue) -> str:
        _, text = self.redactor.written(value, _SORTED_ENCODER)
        return sha256(text.encode()).hexdigest()[:20]


class _EveryRequest:
    """Lets every request through; see `Requests`."""

    async def send(self, model: str, work: Work[T]) -> T:
        """Ask a model."""
        del model
        return await work()

    def record(self, model: str, used: Mapping[str, JsonValue]) -> None:
        """Count nothing: the turn does."""


_EVERY_REQUEST: Final = _EveryRequest()


def _message(row: RunRow) -> Message:
    return message_from_wire(json.loads(row.input))


def delete_steps(path: Path) -> None:
    """Delete the file of a conversation's steps."""
    for ending in ("", "-wal", "-shm"):
        path.with_name(f"{path.name}{ending}").unlink(missing_ok=True)
