"""Steps of a durable run: answered ones are read, the others are asked and kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, Protocol, TypeVar, cast

from anyio import CancelScope, Event, move_on_after, sleep
from anyio.lowlevel import checkpoint

from fast_agent.engine.run_rows import BEGUN, CANCELLED, DONE, FAILED
from fast_agent.engine.run_store import StoreError
from fast_agent.errors import FastAgentError, RunError
from fast_agent.recording.cassette import Failure
from fast_agent.recording.replayer import difference, raised
from fast_agent.steps.parts import is_same_question, spread
from fast_agent.steps.steps import Key, NullSteps, PlacedSteps, Places, interrupted, note_kept

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fast_agent.engine.run_rows import RunRow, StepRow, StepStore
    from fast_agent.engine.run_store import RunStore
    from fast_agent.steps.parts import Parts, StepRedactor
    from fast_agent.steps.steps import Codec, Kind, Step, Work
    from fast_agent.text.json_value import JsonValue

T = TypeVar("T")

PATIENCE: Final = 30.0
"""How long a step waits that was cancelled in the run's first life, in seconds."""

_WITH_BEGIN: Final = frozenset({"model", "tool", "write"})
"""Kinds whose start is stored, since asking again costs money or has effects."""

_TRACE: Final = Key("", "id", "trace", 1)
"""Where a run keeps the trace of its first life."""

_ENCODER: Final = json.JSONEncoder(separators=(",", ":"))
_SORTED_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


class Requests(Protocol):
    """Lets model requests through, as fast as the provider takes them."""

    async def send(self, model: str, work: Work[T]) -> T:
        """Ask a model.

        Args:
            model: Its name.
            work: Sends the request.

        Raises:
            FastAgentError: What `work` raises in the end.
            RunError: The run pauses: a limit is reached, or the provider's quota.
        """
        ...

    def record(self, model: str, used: Mapping[str, JsonValue]) -> None:
        """Count what an answer of a model used."""
        ...


class DurableSteps(PlacedSteps):
    """The steps of one durable run.

    Args:
        store: Keeps them.
        run: The run, taken by this process.
        redactor: What must not be written.
        requests: Lets model requests through.
        fault: Called at the boundaries of steps with their name and the step's place, for tests
            that kill the process there; None calls nothing.
        parts: The pieces its questions are made of; None creates them.
        is_shielded: Whether the run is cancelled through `close` alone, which distinguishes
            the end of its process from its own decisions.

    Attributes:
        answered: How many steps were answered from the store.
        is_cancelled: Whether a user cancelled the run.
        scope: Holds everything the run does: `with steps.scope: …`.
        stopped: Why the run cannot continue in this process, or None.
    """

    def __init__(
        self,
        store: StepStore,
        run: RunRow,
        redactor: StepRedactor,
        requests: Requests,
        fault: Callable[[str, Key], None] | None = None,
        *,
        parts: Parts | None = None,
        is_shielded: bool = True,
    ) -> None:
        self._store = store
        self._run = run
        self._requests = requests
        self._fault = fault
        self._seen: dict[str, JsonValue] = {}
        self._known: dict[Key, StepRow] = {}
        self._ranks: dict[Key, int] = {}
        self._entered: dict[str, int] = {}
        self._recorded_turns: dict[str, int] = {}
        self._waiting: dict[tuple[str, int], Event] = {}
        self._open: set[str] = set()
        self._order = 0
        self.answered = 0
        self.is_cancelled = False
        self._closing = Event()
        self.scope = CancelScope(shield=is_shielded)
        self.stopped: RunError | None = None
        super().__init__(redactor, self._keep, run.id)
        if parts is not None:
            self.parts, self.places = parts, Places(self, parts)
        if run.attempt > 1:
            self._resume()

    def _resume(self) -> None:
        """Read the steps of former lives."""
        turns: list[tuple[int, Key]] = []
        for row in self._store.steps(self._run.id):
            self._known[row.key] = row
            if row.key.kind == "order":
                turns.append((int(row.gave or 0), row.key))
        for number, key in sorted(turns):
            self._order = number
            self._ranks[key] = self._recorded_turns.get(key.name, 0)
            self._recorded_turns[key.name] = self._ranks[key] + 1

    def _keep(self, digest: str, value: JsonValue) -> None:
        self._seen[digest] = value
        self._store.store_part(digest, value)

    async def ask(self, step: Step, work: Work[T], codec: Codec[T]) -> T:
        """Return the kept answer, or ask for one and keep it; see `Steps.ask`.

        Raises:
            ToolError: The process was killed during a step that must not be repeated.
        """
        if self.stopped is None and not self._closing.is_set():
            try:
                return await self._answered(step, work, codec)
            except PausedError as error:
                self.stopped = self.stopped or error
            except StoreError as error:
                self._stop(error)
        # No agent may take the reason for an answer: the whole run ends here.
        self._stop_when_answered(self.places.here().path)
        await self._closing.wait()
        await checkpoint()
        # What tidies up behind a shield gets here; in the run's next life it has another question.
        raise self.stopped or RunError("the run was stopped")

    async def _answered(self, step: Step, work: Work[T], codec: Codec[T]) -> T:
        key = self.places.key(step.kind, self._redactor.redact(step.name))
        asked = self._comparable(step)
        known = self._known.get(key)
        if known is not None and known.asked != asked and not self._is_same(known.asked, asked):
            raise self._difference(key, known, step)
        if known is not None and known.state in {DONE, FAILED}:
            return self._answer(known, codec)
        if step.kind != "agent":
            # An agent's own questions are cancelled again by what cancelled them.
            await self._stop_if_cancelled(known)
        if known is not None and not _may_be_asked_again(step):
            raise interrupted(step.title)
        if step.kind != "agent":  # its own questions are under way, each of them a step
            self._open.add(key.inside)
        try:
            return await self._ask_and_store(key, asked, step, work, codec)
        finally:
            self._open.discard(key.inside)
            if self.stopped is not None:
                self._stop_when_answered("")

    def _is_same(self, old: str, new: str) -> bool:
        pieces = self._store.parts
        return is_same_question(json.loads(old), pieces, json.loads(new), pieces)

    async def _ask_and_store(
        self, key: Key, asked: str, step: Step, work: Work[T], codec: Codec[T]
    ) -> T:
        note_kept(is_kept=False)  # for what the work asks that is no step
        try:
            answer = await self._asked(key, asked, step, work)
        except (PausedError, StoreError):
            raise
        except FastAgentError as error:
            hint = None if error.hint is None else self._redactor.redact(error.hint)
            message = self._redactor.redact(error.message)
            self._end(key, asked, FAILED, _json([type(error).__name__, message, hint]))
            raise
        except Exception as error:
            message = self._redactor.redact(str(error))
            self._end(key, asked, FAILED, _json(["RunError", message, None]))
            raise
        except BaseException:
            if not self._closing.is_set():
                self._end(key, asked, CANCELLED, "null")
            raise
        self._keep_answer(key, asked, step, codec.write(answer))
        await self._store.shared()
        note_kept(is_kept=False)
        return answer

    def cancel(self) -> None:
        """Cancel the run, as a user asks for; what is under way has no answer."""
        self.is_cancelled = True
        self.close()

    def close(self) -> None:
        """End the run in this process: what is cancelled from now on was not decided by the run."""
        self._closing.set()
        self.scope.cancel()

    def _stop_when_answered(self, place: str) -> None:
        """Stop once no step is under way whose answer is still to come.

        Args:
            place: Where a question stays without an answer: no step around it ends any more.
        """
        self._open = {one for one in self._open if not _is_within(place, one)}
        if self.stopped is not None and not self._open:
            self._stop(self.stopped)

    def _stop(self, error: RunError) -> None:
        """End the run in this process."""
        self.stopped = self.stopped or error
        self.close()

    def _answer(self, known: StepRow, codec: Codec[T]) -> T:
        self.answered += 1
        note_kept(is_kept=True)
        gave = None if known.gave is None else json.loads(known.gave)
        if known.state == FAILED:
            kind, message, hint = cast("list[str]", gave)
            raise raised(Failure(kind, message, hint), self._redactor)
        return codec.read(self._redactor.restored(gave))

    async def _asked(self, key: Key, asked: str, step: Step, work: Work[T]) -> T:
        """Ask the outside, once the start is stored."""

        async def begin() -> T:
            self._reach("before", key)
            if step.kind in _WITH_BEGIN:
                self._store.write_step(self._run, key, asked, BEGUN)
                if not _may_be_asked_again(step):
                    self._store.sync()
                self._reach("begun", key)
            if step.kind != "model":
                # It may end the process, or hold its loop: the answers before it must be safe.
                await self._store.barrier()
            return await work()

        if step.kind == "model":
            return await self._requests.send(str(_model_of(step)), begin)
        # What is asked inside a tool, as by agents it starts, has its own place.
        with self.places.inside(key):
            return await begin()

    def _keep_answer(self, key: Key, asked: str, step: Step, gave: JsonValue) -> None:
        used = gave.get("usage") if step.kind == "model" and isinstance(gave, dict) else None
        self._reach("answered", key)
        _, written = self._redactor.written(gave, _ENCODER)
        self._end(key, asked, DONE, written, used)
        if isinstance(used, dict):
            self._requests.record(str(_model_of(step)), used)
        self._reach("kept", key)

    def _end(self, key: Key, asked: str, state: int, gave: str, used: JsonValue = None) -> None:
        noted = None if used is None else _json(used)
        self._store.write_step(self._run, key, asked, state, gave, noted)

    def _comparable(self, step: Step) -> str:
        """Write a question such that equal ones are equal texts."""
        return self._redactor.written(step.asked, _SORTED_ENCODER)[1]

    def _reach(self, boundary: str, key: Key) -> None:
        if self._fault is not None:
            self._store.flush()
            self._fault(boundary, key)

    async def _stop_if_cancelled(self, known: StepRow | None) -> None:
        """End where a former life ended: by a time-out, or by what cancelled the step."""
        await self.stop_if_late()
        if known is not None and known.state == CANCELLED:
            # Whatever cancelled it then does so again; if nothing does, it is asked.
            await sleep(PATIENCE)

    async def enter(self, agent: str) -> None:
        """Start a turn when it is its turn; see `Steps.enter`."""
        if self.places.here().silent:
            return
        key = self.places.key("order", agent)
        rank = self._ranks.get(key)
        if rank is None:
            rank = self._recorded_turns.get(agent, 0)
            is_new = True
        else:
            is_new = False
        if rank > self._entered.get(agent, 0):
            event = self._waiting.setdefault((agent, rank), Event())
            with move_on_after(PATIENCE):
                await event.wait()
            self.check()
        self._entered[agent] = max(self._entered.get(agent, 0), rank + (not is_new))
        following = self._waiting.pop((agent, rank + 1), None)
        if following is not None:
            following.set()
        if is_new:
            self._order += 1
            self._store.write_step(self._run, key, "null", DONE, str(self._order))

    def noted_late(self, key: Key) -> bool | None:
        """Return whether the time-out expired in a former life; see `Steps.deadline`."""
        known = self._known.get(key)
        if known is None:
            return None
        self.answered += 1
        return known.gave == "true"

    def note_late(self, key: Key, *, is_late: bool) -> None:
        """Keep whether a time-out expired."""
        if not self._closing.is_set():
            self._store.write_step(self._run, key, "null", DONE, _json(is_late))

    def check(self) -> None:
        """Check that the questions so far are those of former lives; see `Steps.check`."""
        if self.stopped is not None:
            raise self.stopped

    def part(self, digest: str) -> JsonValue:
        """Return a piece of an answer; see `Steps.part`."""
        found = self._seen.get(digest)
        return self._redactor.restored(self._store.part(digest) if found is None else found)

    def note(self, kind: Kind, name: str, value: Callable[[], str]) -> str:
        """Return what was noted in the first life; see `Steps.note`."""
        key = self.places.key(kind, self._redactor.redact(name))
        known = self._known.get(key)
        if known is not None:
            self.answered += 1
            return str(self._redactor.restored(json.loads(known.gave or '""')))
        seen = value()
        if not self.places.here().silent:
            gave = _json(self._redactor.redact(seen))
            self._store.write_step(self._run, key, "null", DONE, gave)
        return seen

    def former_trace(self, current: str) -> str | None:
        """Return the trace of the run's first life, or keep the first one."""
        known = self._known.get(_TRACE)
        if known is None:
            self._store.write_step(self._run, _TRACE, "null", DONE, _json(current))
            return None
        return str(json.loads(known.gave or '""'))

    def fact(self, name: str, value: Callable[[], str]) -> str:
        """Return what is true: facts belong to the runtime, not to one of its runs."""
        del name
        return value()

    def _difference(self, key: Key, known: StepRow, step: Step) -> StoreError:
        pieces = self._store.parts
        old = spread(json.loads(known.asked), pieces)
        # Both in the order of the kept one, so that only what differs is shown.
        new = spread(json.loads(self._comparable(step)), pieces)
        lines = difference(old, new)
        return DriftError(
            f"step `{step.title}` of agent `{key.agent}` is not the one this run asked before;"
            f" `-` is kept, `+` is asked now:\n{lines}",
            hint="undo the change, or use another --output to start again",
        )


class DriftError(StoreError):
    """A run does not ask what it asked before it was killed."""


class PausedError(RunError):
    """The run pauses: nothing of it is lost, and it continues later.

    Args:
        message: Why.
        hint: How it continues.
        until: When, in seconds since 1970; None if unknown.
        signal: The number of the signal that stopped it, or None.
    """

    status = 75

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        until: float | None = None,
        signal: int | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.until = until
        self.signal = signal


class RuntimeFacts(NullSteps):
    """Facts of the runtime that carries the runs of a store: the same in every life.

    Args:
        store: Keeps them.
    """

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._known = store.facts()

    def fact(self, name: str, value: Callable[[], str]) -> str:
        """Return what was true when the batch began; see `Steps.fact`."""
        key = f"fact:{name}"
        if key not in self._known:
            self._known[key] = value()
            self._store.set_facts({key: self._known[key]})
        return self._known[key]


def _may_be_asked_again(step: Step) -> bool:
    return step.repeatable or step.asks_in_steps


def _model_of(step: Step) -> JsonValue:
    return step.asked.get("model") if isinstance(step.asked, dict) else None


def _is_within(place: str, outer: str) -> bool:
    return place == outer or place.startswith(f"{outer}/")


def _json(value: JsonValue) -> str:
    # In its own order: the tool calls of an answer are an object, and are called in that order.
    return _ENCODER.encode(value)
