"""The workflow of a run: the product's own loop, whose steps are activities.

Nothing here may depend on the machine or the time: the code runs again from the start, on any
worker, whenever the run is not in a worker's memory. Time and ids come from the workflow, cards
from the pinned edition. The sandbox of the SDK is off: it forbids what libraries do while they are
imported, so the tests replay histories instead.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import timedelta, timezone
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol, TypeVar, cast

from temporalio import workflow
from temporalio.common import RetryPolicy, VersioningBehavior
from temporalio.exceptions import ActivityError, ApplicationError, TimeoutType
from temporalio.exceptions import CancelledError as TemporalCancelledError
from temporalio.exceptions import TimeoutError as TemporalTimeoutError

from fast_agent.agents.offered_tools import READ_RESULT
from fast_agent.agents.output import JsonOutput
from fast_agent.engine.execute import next_digests, part_digests
from fast_agent.engine.temporal.connection import side_queue
from fast_agent.engine.temporal.progress import event_to_json
from fast_agent.engine.temporal.questions import Questions, asked_by
from fast_agent.errors import FastAgentError, RunError
from fast_agent.messages.json_message import message_from_wire, message_to_wire
from fast_agent.models.step_model import usage_to_json
from fast_agent.recording.cassette import Failure
from fast_agent.recording.replayer import raised
from fast_agent.steps.steps import NULL_STEPS, PlacedSteps, interrupted
from fast_agent.tools.human_input import NAME as HUMAN_INPUT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from anyio import CancelScope

    from fast_agent.agents.conversation import Conversation
    from fast_agent.agents.events import Event, Listener
    from fast_agent.agents.turn_context import TurnResult
    from fast_agent.messages.message import Message
    from fast_agent.runtime.runtime import Runtime
    from fast_agent.steps.parts import StepRedactor
    from fast_agent.steps.steps import Codec, Key, Kind, Step, Work
    from fast_agent.text.json_value import JsonValue

T = TypeVar("T")

LOOP_VERSION: Final = "3"
"""The build id of workers: raised when the loop asks for other steps than before."""

WORKFLOW: Final = "AgentRun"

READ_AT_ONCE: Final = 4_000
"""Messages that are read without a pause, over all agents, in some tenths of a second."""

_PAUSE_SECONDS: Final = 0.001
"""The timer between them; servers fire it after a second."""

_IN_LOOP: Final = frozenset({READ_RESULT, HUMAN_INPUT})
"""Tools that need the conversation or the user, and nothing of a machine."""

_MAX_STEP: Final = timedelta(hours=12)
"""A step may take long; a worker that died is noticed by its heartbeat."""

OUT_OF_STEP: Final = "OutOfStep"
"""The type of the error when a conversation remembers other messages than its client."""

TURN_CANCELLED: Final = "TurnCancelled"

"""The type of the error of a cancelled turn whose conversation continues."""

_IDLE_SECONDS: Final = 24 * 3600.0
"""How long a conversation waits for its next turn before it ends."""

_RETRIES: Final = RetryPolicy(
    initial_interval=timedelta(seconds=0.5), maximum_interval=timedelta(seconds=30)
)
_NO_RETRY: Final = RetryPolicy(maximum_attempts=1)


@dataclass(frozen=True, slots=True)
class LoopEdition:
    """An edition as the loop of its runs needs it.

    Args:
        runtime: Its agents, none of which reaches anything outside.
        redactor: What is hidden in steps.
        queues: The queues of the agents whose cards name one.
    """

    runtime: Runtime
    redactor: StepRedactor
    queues: Mapping[str, str]


class Editions(Protocol):
    """The editions of a worker."""

    def loop(self, digest: str) -> LoopEdition:
        """Return an edition, loading it first where that is needed.

        Raises:
            FastAgentError: It cannot be loaded.
        """
        ...


_shows: ContextVar[bool] = ContextVar("whether a client watches the turn", default=False)
_asks: ContextVar[bool] = ContextVar("whether a user can be asked in the turn", default=True)
_trace: ContextVar[JsonValue] = ContextVar("the trace of the turn, or None", default=None)

editions: ContextVar[Editions] = ContextVar("the editions of the worker that runs a workflow")
"""Set by the worker around each workflow."""


@workflow.defn(name=WORKFLOW, sandboxed=False, versioning_behavior=VersioningBehavior.PINNED)
class AgentRun:
    """One run: a message, the turn of an agent and its answer; or a conversation of many turns."""

    def __init__(self) -> None:
        self._due: list[tuple[str, dict[str, Any]]] = []
        self._turns: dict[str, asyncio.Task[None]] = {}
        self._ended: dict[str, dict[str, Any] | ApplicationError] = {}
        self._dropped: set[str] = set()
        self._count = 0
        self._is_closing = False
        self._questions = Questions()
        self._steps: WorkflowSteps | None = None
        self._events: dict[str, list[Event]] = {}

    @workflow.run
    async def run(self, given: dict[str, Any]) -> dict[str, Any]:
        """Run the turn.

        Args:
            given: The edition, the agent, the message, the JSON Schema of the answer or None, and
                the options of `RunSpec`. A conversation has no message: `turn` brings each.

        Returns:
            The answer with what it used; of a conversation, how many turns it had.
        """
        try:
            return await self._run(given)
        except FastAgentError as error:
            raise application_error(error) from error
        except (ApplicationError, asyncio.CancelledError):
            raise
        except Exception as error:
            # It would fail the task, which is tried again for ever, and not the run.
            raise _unexpected(error) from error

    async def _run(self, given: dict[str, Any]) -> dict[str, Any]:
        edition = editions.get().loop(str(given["edition"]))
        self._steps = steps = WorkflowSteps(
            given, edition.redactor, edition.queues, self._questions
        )
        _trace.set(given.get("trace"))
        _asks.set(bool(given.get("asks", True)))
        conversation: Conversation = edition.runtime.new_conversation(
            steps=steps, human=self._questions
        )
        try:
            if "message" not in given:
                return await self._converse(given, conversation, steps)
            return answer_of(await _asked(conversation, given), steps)
        finally:
            await conversation.aclose()

    async def _converse(
        self, given: dict[str, Any], conversation: Conversation, steps: WorkflowSteps
    ) -> dict[str, Any]:
        """Run the turns of a conversation until it is closed, or no turn comes for a day.

        Where the history grows long, the conversation continues in a new one between two turns.
        """
        self._count = int(given.get("turns", 0))
        remembered = cast("dict[str, list[JsonValue]]", given.get("remembered") or {})
        for name, messages in (await _read(remembered, steps)).items():
            conversation.agent(name).load_history(messages)
        idle = asyncio.create_task(self._close_when_idle())
        try:
            while True:
                await workflow.wait_condition(
                    lambda: bool(self._due) or (self._is_idle and (self._is_closing or _is_long()))
                )
                for key, turn in self._due:
                    self._turns[key] = asyncio.create_task(
                        self._take_turn(key, turn, conversation, steps)
                    )
                if not self._due:
                    break
                self._due.clear()
        except asyncio.CancelledError:
            for task in self._turns.values():
                task.cancel()
            await workflow.wait_condition(lambda: self._is_idle)
            raise
        finally:
            idle.cancel()
        if not self._is_closing:
            self._continue(given, conversation, steps)
        return {"turns": self._count}

    def _continue(
        self, given: dict[str, Any], conversation: Conversation, steps: WorkflowSteps
    ) -> NoReturn:
        """Continue in a new history, in the newest version of the loop."""
        remembered = {
            name: _written(conversation.agent(name).history, steps) for name in conversation.live
        }
        workflow.continue_as_new(
            {
                **given,
                "remembered": {name: lines for name, lines in remembered.items() if lines},
                "kept": steps.conversations,
                "turns": self._count,
                "part": int(given.get("part", 0)) + 1,
            },
            initial_versioning_behavior=workflow.ContinueAsNewVersioningBehavior.AUTO_UPGRADE,
        )

    @property
    def _is_idle(self) -> bool:
        return not self._due and not self._turns and workflow.all_handlers_finished()

    async def _close_when_idle(self) -> None:
        while not self._is_closing:
            count = self._count
            await asyncio.sleep(_IDLE_SECONDS)
            # A turn may wait for its user for days.
            self._is_closing = count == self._count and self._is_idle

    async def _take_turn(
        self, key: str, given: dict[str, Any], conversation: Conversation, steps: WorkflowSteps
    ) -> None:
        """Run a turn of a conversation, and keep what `turn` returns or raises."""
        self._count += 1
        heard = self._listener_of(key) if given.get("shows") else None
        _shows.set(heard is not None)
        _asks.set(bool(given.get("asks", True)))
        _trace.set(given.get("trace"))
        try:
            if key in self._dropped:
                raise asyncio.CancelledError
            agent = conversation.agent(str(given["agent"]))
            if given.get("history") is not None:
                read = await _read({agent.name: given["history"]}, steps)
                agent.load_history(read[agent.name])
            elif len(agent.history) != given["remembers"]:
                raise ApplicationError(
                    "the conversation was started again", type=OUT_OF_STEP, non_retryable=True
                )
            before = steps.asked
            result = await _asked(conversation, given, heard)
            self._ended[key] = {
                **answer_of(result, steps),
                "steps": steps.asked - before,
                "messages": _written(result.messages[1:], steps),
                "own": usage_to_json(result.usage),
                "workflow": steps.parts.redactor.redacted(result.workflow),
                "remembers": len(agent.history),
            }
        except asyncio.CancelledError:
            self._ended[key] = ApplicationError(
                "the turn was cancelled", type=TURN_CANCELLED, non_retryable=True
            )
        except FastAgentError as error:
            self._ended[key] = application_error(error)
        except ApplicationError as error:
            self._ended[key] = error
        except Exception as error:  # noqa: BLE001 (the boundary of a turn)
            self._ended[key] = _unexpected(error)
        finally:
            del self._turns[key]

    def _listener_of(self, key: str) -> Listener:
        """Keep the events of a turn, until another one begins after its end."""
        for ended in self._events.keys() - self._turns.keys():
            del self._events[ended]
        return self._events.setdefault(key, []).append

    @workflow.query(name="events")
    def events(self, key: str, after: int) -> list[dict[str, Any]]:
        """Return the events of a turn behind a number of them."""
        steps, events = self._steps, self._events.get(key, ())
        if steps is None:
            return []
        redacted = steps.parts.redactor.redacted
        return [cast("dict[str, Any]", redacted(event_to_json(one))) for one in events[after:]]

    @workflow.update(name="turn")
    async def turn(self, key: str, given: dict[str, Any]) -> dict[str, Any]:
        """Run a turn of a conversation.

        Args:
            key: Names the turn.
            given: The agent, the message, the JSON Schema of the answer or None, how many messages
                the agent remembers, or `history`: all of them; `shows`, whether a client watches.

        Returns:
            The answer, every message after the user's, and what the turn used.
        """
        # The loop of the conversation runs it: a handler does not know the worker's editions.
        self._due.append((key, given))
        await workflow.wait_condition(lambda: key in self._ended)
        ended = self._ended.pop(key)
        if isinstance(ended, ApplicationError):
            raise ended
        return ended

    @workflow.signal(name="cancel_turn")
    def cancel_turn(self, key: str) -> None:
        """Cancel a turn of a conversation; the conversation continues."""
        task = self._turns.get(key)
        if task is None:
            self._dropped.add(key)
        else:
            task.cancel()

    @workflow.signal(name="close")
    def close(self) -> None:
        """End a conversation once no turn of it runs."""
        self._is_closing = True

    @workflow.update(name="question")
    async def question(
        self, key: str, question: dict[str, Any], is_first: bool = False
    ) -> dict[str, Any]:
        """Ask a user for a step, which waits in a worker.

        Args:
            key: Names the question; the same in every attempt of the step.
            question: The question.
            is_first: Whether the step does nothing before it was let `act` on the answer.
        """
        answer = await self._questions.ask_for_step(key, question, is_first=is_first)
        return {"action": answer.action, "content": answer.content}

    @workflow.update(name="act")
    async def act(self, key: str) -> None:
        """Allow a step to act on the answer to its question, one of its attempts alone.

        Args:
            key: Names the question.
        """
        self._questions.act(key)

    @workflow.query(name="may_act")
    def may_act(self) -> list[str]:
        """Return the keys of the first questions of steps that did nothing yet."""
        return self._questions.may_act

    @workflow.signal(name="answer")
    def answer(self, key: str, action: str, content: dict[str, Any] | None) -> None:
        """Take the answer of a user; the first one counts."""
        self._questions.answer(key, action, content)

    @workflow.query(name="questions")
    def questions(self) -> dict[str, Any]:
        """Return the open questions by their keys."""
        return dict(self._questions.open)

    @workflow.query(name="progress")
    def progress(self) -> dict[str, Any]:
        """Return how many steps were asked, and which are waiting."""
        steps = self._steps
        if steps is None:  # the run has not started
            return {"steps": 0, "waiting": []}
        return {"steps": steps.asked, "waiting": list(steps.waiting.values())}


async def _asked(
    conversation: Conversation, given: dict[str, Any], listener: Listener | None = None
) -> TurnResult:
    """Run the turn that was asked for."""
    schema = given.get("schema")
    return await conversation.agent(str(given["agent"])).generate(
        message_from_wire(given["message"]),
        context=None if _asks.get() else replace(conversation.context, human=None),
        output=None if schema is None else JsonOutput(schema),
        listener=listener,
    )


def _is_long() -> bool:
    return workflow.info().is_continue_as_new_suggested()


def _written(messages: Iterable[Message], steps: WorkflowSteps) -> list[JsonValue]:
    """Write messages without secrets, as steps keep them: those that were asked are written."""
    return [steps.kept(steps.parts.digest_of_message(one)) for one in messages]


async def _read(
    histories: Mapping[str, Sequence[JsonValue]], steps: WorkflowSteps
) -> dict[str, list[Message]]:
    """Read what agents remember, and name each message for the questions that follow.

    The server takes a workflow that computes for two seconds for one that hangs, and tries the
    same again: many messages are read in parts, with a timer between them.
    """
    restored = steps.parts.redactor.restored
    found: dict[str, list[Message]] = {}
    room = READ_AT_ONCE
    for name, lines in histories.items():
        messages = found[name] = []
        while len(messages) < len(lines):
            if not room:
                await asyncio.sleep(_PAUSE_SECONDS)
                room = READ_AT_ONCE
            part = lines[len(messages) : len(messages) + room]
            room -= len(part)
            messages += [message_from_wire(restored(one)) for one in part]
            steps.parts.digest_of_conversation(messages)
    return found


def _unexpected(error: Exception) -> ApplicationError:
    text = f"{type(error).__name__}: {error}"
    return ApplicationError(text, type="RunError", non_retryable=True)


class WorkflowSteps(PlacedSteps):
    """Steps that are asked in workflow code, and answered by activities.

    Args:
        given: What the run was started with.
        redactor: What is hidden in them.
        queues: The queues of the agents whose cards name one.
        questions: What is asked of the user.

    Attributes:
        asked: How many steps were asked.
        conversations: The digest of the conversation that each agent last asked its model with.
            It is kept, and so is all that it leads to.
        waiting: What is asked now, by number.
    """

    def __init__(
        self,
        given: dict[str, Any],
        redactor: StepRedactor,
        queues: Mapping[str, str],
        questions: Questions,
    ) -> None:
        self._queues = queues
        self._questions = questions
        self._edition = str(given["edition"])
        self._queue = str(given["queue"])
        self._model_queues = frozenset(cast("list[str]", given.get("model_queues", [])))
        self._heartbeat = timedelta(seconds=float(given["heartbeat_seconds"]))
        self._zone = timezone(timedelta(seconds=float(given["utc_offset"])))
        self._known: dict[str, JsonValue] = {}
        self.conversations = dict(cast("dict[str, str]", given.get("kept", {})))
        self._kept = {*self.conversations.values()}
        part = int(given.get("part", 0))
        # A conversation asks the same again in its next history: ids of turns must differ.
        self._run = workflow.info().workflow_id + (f"~{part}" if part else "")
        super().__init__(redactor, self._known.__setitem__, self._run)
        self.asked = 0
        self.waiting: dict[int, str] = {}

    @property
    def replays(self) -> bool:
        """True: nothing is asked from here."""
        return True

    async def ask(self, step: Step, work: Work[T], codec: Codec[T]) -> T:
        """Ask in an activity; see `Steps.ask`."""
        key = self.places.key(step.kind, self._redactor.redact(step.name))
        asked = self._redactor.redacted(step.asked)
        if step.kind == "agent":
            return await work()  # what the child asks is a step each
        if self._stays_here(step):
            with self.places.silence():
                return await work()
        pieces = self._new_pieces(asked)
        given = {
            "edition": self._edition,
            "run": self._run,
            "kind": key.kind,
            "name": key.name,
            "agent": step.agent or key.agent,
            "turn": key.turn,
            "number": key.number,
            "asked": asked,
            "pieces": {digest: self._known[digest] for digest in pieces},
        }
        if step.asks_first and not step.repeatable:
            given["acts_once"] = True
        if _shows.get():
            given["shows"] = True
        if not _asks.get():
            given["asks"] = False
        if (trace := _trace.get()) is not None:
            given["trace"] = trace
        self.asked = number = self.asked + 1
        self.waiting[number] = f"{key.kind} {step.agent or key.agent} {step.title}".strip()
        try:
            answer = await self._executed(step, key, given)
        finally:
            del self.waiting[number]
        # Only an activity that ended has surely kept them.
        self._kept.update(pieces)
        if isinstance(asked, dict) and "messages" in asked:
            self.conversations[step.agent or key.agent] = str(asked["messages"])
        self._known.update(answer.get("pieces") or {})
        return codec.read(self._redactor.restored(answer["gave"]))

    def kept(self, digest: str) -> JsonValue:
        """Return a piece without its secrets, as it is kept."""
        return self._known[digest]

    def _stays_here(self, step: Step) -> bool:
        asked = step.asked
        return step.kind == "tool" and isinstance(asked, dict) and asked["tool"] in _IN_LOOP

    def _new_pieces(self, asked: JsonValue) -> list[str]:
        """Return the digests of what the question names and no store keeps yet."""
        found: dict[str, None] = {}
        wanted = list(part_digests(asked))
        while wanted:
            digest = wanted.pop()
            if digest in found or digest in self._kept or digest not in self._known:
                continue
            found[digest] = None
            wanted += next_digests(self._known[digest])
        return list(found)

    async def _executed(self, step: Step, key: Key, given: dict[str, Any]) -> dict[str, Any]:
        # Nothing of a local activity is seen before it ends, and no query is answered until then.
        goes_there = (step.agent or key.agent) in self._queues
        if step.is_local and step.repeatable and not goes_there and not _shows.get():
            answer = await self._ended(self._started_here(step, given), step, key)
            if "elsewhere" not in answer:
                return answer
        with self._questions.of_step(asked_by(given)):
            return await self._ended(self._started(step, key, given), step, key)

    async def _ended(
        self, handle: workflow.ActivityHandle[Any], step: Step, key: Key
    ) -> dict[str, Any]:
        try:
            # anyio cancels a task again and again until it has ended, and a cancelled activity
            # ends only in a later activation: without the shield, the loop would never yield.
            return cast("dict[str, Any]", await asyncio.shield(handle))
        except asyncio.CancelledError:
            handle.add_done_callback(_read_end)
            handle.cancel()
            raise
        except ActivityError as error:
            raise self._translated(error, step, key) from error

    def _started_here(self, step: Step, given: dict[str, Any]) -> workflow.ActivityHandle[Any]:
        return workflow.start_local_activity(
            step.kind,
            given,
            result_type=dict,
            start_to_close_timeout=_MAX_STEP,
            retry_policy=_RETRIES,
        )

    def _started(self, step: Step, key: Key, given: dict[str, Any]) -> workflow.ActivityHandle[Any]:
        retries = _RETRIES if step.repeatable or "acts_once" in given else _NO_RETRY
        return workflow.start_activity(
            step.kind,
            given,
            result_type=dict,
            task_queue=self._queue_of(step, key),
            start_to_close_timeout=_MAX_STEP,
            heartbeat_timeout=self._heartbeat,
            retry_policy=retries,
        )

    def _queue_of(self, step: Step, key: Key) -> str | None:
        """Return the queue of a step: that of its agent's card, or of its model; None is the run's.

        A child agent with a queue stays in the workflow of its parent, with whom it shares memory,
        limits and events; only its steps move.
        """
        named = self._queues.get(step.agent or key.agent)
        if named is not None:
            return side_queue(self._queue, named)
        asked = step.asked
        if step.kind != "model" or not isinstance(asked, dict):
            return None
        model = str(asked.get("model"))
        return side_queue(self._queue, model) if model in self._model_queues else None

    def _translated(self, error: ActivityError, step: Step, key: Key) -> BaseException:
        """Return the error of an activity as one of ours."""
        cause = error.cause
        if isinstance(cause, TemporalCancelledError):
            return asyncio.CancelledError()
        if isinstance(cause, ApplicationError):
            return fast_agent_error(cause, self._redactor)
        if isinstance(cause, TemporalTimeoutError) and cause.type == TimeoutType.HEARTBEAT:
            return interrupted(step.title)
        return RunError(f"a step of agent `{key.agent}` failed: {cause or error}")

    async def enter(self, agent: str) -> None:
        """Start a turn: workflow code runs in the same order every time."""

    async def wait_for(self, step: Step, work: Work[T], codec: Codec[T]) -> T:
        """Wait for a user's answer: a signal of the workflow brings it."""
        del step, codec
        return await work()

    def noted_late(self, key: Key) -> None:
        """Return None: the timers of a workflow are durable."""
        del key

    def note_late(self, key: Key, *, is_late: bool) -> None:
        """Keep nothing: the timers of a workflow are durable."""

    def deadline(self, name: str, seconds: float) -> AbstractContextManager[CancelScope]:
        """Bound what is inside; the loop of a workflow makes a durable timer of it."""
        return NULL_STEPS.deadline(name, seconds)

    def check(self) -> None:
        """Accept the run: the server compares what it asks with its history."""

    def part(self, digest: str) -> JsonValue:
        """Return a piece of an answer; see `Steps.part`."""
        if digest not in self._known:
            raise RunError(f"part `{digest}` of an answer is missing")
        return self._redactor.restored(self._known[digest])

    def note(self, kind: Kind, name: str, value: Callable[[], str]) -> str:
        """Answer a question that cannot wait: of the clock, the time of the workflow."""
        del value
        if kind == "clock":
            return workflow.now().astimezone(self._zone).isoformat()
        raise RunError(f"`{name}` cannot be asked in a run on Temporal")

    def fact(self, name: str, value: Callable[[], str]) -> str:
        """Return what is true: facts belong to the edition."""
        del name
        return value()


def _read_end(handle: asyncio.Future[Any]) -> None:
    """Read how a step ended that is not waited for any more: asyncio reports what is never read."""
    if not handle.cancelled():
        handle.exception()


def answer_of(result: TurnResult, steps: WorkflowSteps) -> dict[str, Any]:
    """Write what a turn returned."""
    redacted = steps.parts.redactor.redacted
    return {
        "message": redacted(message_to_wire(result.message)),
        "structured": redacted(cast("JsonValue", result.structured)),
        "stop_reason": result.stop_reason,
        "used": usage_to_json(result.tree_usage),
        "steps": steps.asked,
    }


def application_error(error: FastAgentError, **options: Any) -> ApplicationError:
    """Return an error as Temporal carries it: it ends what it happens in, and is not retried."""
    given: dict[str, Any] = {"non_retryable": True, **options}
    return ApplicationError(error.message, error.hint, type=type(error).__name__, **given)


def fast_agent_error(error: ApplicationError, redactor: StepRedactor) -> FastAgentError:
    """Return an error that Temporal carried, as its own type."""
    hint = error.details[0] if error.details else None
    failure = Failure(error.type or "RunError", error.message, None if hint is None else str(hint))
    return raised(failure, redactor)
