"""Conversations as workflows: workers run the turns of agents that a client has live."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import astuple, dataclass, field
from logging import getLogger
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, cast
from weakref import WeakKeyDictionary, finalize

from temporalio.client import WorkflowQueryFailedError, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from fast_agent.engine.temporal.progress import SHOW_SECONDS, TurnView
from fast_agent.engine.temporal.runs import RunCancelledError, traced, update
from fast_agent.engine.temporal.workflow import OUT_OF_STEP, TURN_CANCELLED, fast_agent_error
from fast_agent.errors import RunError
from fast_agent.messages.json_message import message_from_wire, message_to_wire
from fast_agent.models.step_model import usage_from_json
from fast_agent.tools.human import HumanAnswer, question_from_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from temporalio.client import WorkflowHandle

    from fast_agent.agents.output import OutputShape
    from fast_agent.agents.turn_life import TurnLife
    from fast_agent.engine.temporal.runs import PinnedEdition, TemporalRuns
    from fast_agent.messages.history import History
    from fast_agent.messages.message import Message
    from fast_agent.models.model import Usage
    from fast_agent.text.json_value import JsonObject
    from fast_agent.tools.human import Human, HumanRequest

log = getLogger(__name__)

_ENDED: Final = "AcceptedUpdateCompletedWorkflow"
"""What the server calls the error of a turn whose workflow ended."""

QUESTION_SECONDS: Final = 0.5
"""How often a client looks whether a turn asks its user."""

_CLOSE_SECONDS: Final = 5.0
_LAST_LOOK_SECONDS: Final = 2.0


class PinCards(Protocol):
    """Pins the cards of a program as they are now."""

    @property
    def version(self) -> object:
        """Another value whenever the cards are others."""
        ...

    @property
    def pin(self) -> Callable[[], Awaitable[PinnedEdition]]:
        """Pins them.

        Raises:
            FastAgentError: They cannot be run, or not by other machines.
        """
        ...


@dataclass(slots=True)
class _KnownMemory:
    """What the workflow is known to remember of an agent: so many messages, this one the last."""

    count: int
    last: Message | None

    def is_all_of(self, history: History) -> bool:
        """Whether it remembers this history."""
        return self.count == len(history) and (not self.count or history[-1] is self.last)


@dataclass(slots=True)
class _CarriedConversation:
    """A conversation in a workflow.

    Args:
        version: The cards it was started with.
        handle: The workflow.
        remembered: What its agents remember, by their names.
        asked: The open questions that a user was asked: turns at the same time see those of all.
        looking: Held while a turn looks for questions.
        askers: How many turns look for them.
    """

    version: object
    handle: WorkflowHandle[Any, Any]
    remembered: dict[str, _KnownMemory] = field(default_factory=dict[str, _KnownMemory])
    asked: set[str] = field(default_factory=set[str])
    looking: asyncio.Lock = field(default_factory=asyncio.Lock)
    askers: int = 0


class TemporalCarrier:
    """Has the turns of agents run by workers; see `TurnCarrier`.

    What agents remember stays with the client, which may save, rewind or clear it. A turn brings
    the history only where the workflow remembers another one.

    Args:
        runs: The connection, and what starts workflows.
        cards: Pins the cards.
        human: The user of conversations that have no other, or None.
    """

    def __init__(self, runs: TemporalRuns, cards: PinCards, human: Human | None = None) -> None:
        self._runs = runs
        self._cards = cards
        self._human = human
        self._pinned: tuple[object, PinnedEdition] | None = None
        self._carried: WeakKeyDictionary[object, _CarriedConversation] = WeakKeyDictionary()
        self._ended: list[WorkflowHandle[Any, Any]] = []
        self._starting = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """End the conversations; turns under way end first."""
        self._ended += [one.handle for one in self._carried.values()]
        self._carried.clear()
        await self._close_ended()

    async def _close_ended(self) -> None:
        while self._ended:
            await _signal(self._ended.pop(), "close")

    async def carry(self, life: TurnLife, output: OutputShape | None) -> None:
        """Run a turn on a worker, and finish it; see `TurnCarrier.carry`."""
        agent, history = life.origin.agent, life.draft.history
        given: dict[str, Any] = {
            "agent": agent,
            "message": self._runs.redactor.redacted(message_to_wire(life.message)),
            "schema": None if output is None else output.schema.schema,
            "shows": life.is_heard,
            "asks": self._human_of(life) is not None,
            **traced(),
        }
        view = TurnView(life)
        said = await self._turn_answer(life, view, history, given)
        read = self._runs.redactor.restored
        messages = [message_from_wire(read(one)) for one in said["messages"]]
        answer = message_from_wire(read(said["message"]))
        if messages and messages[-1] == answer:
            answer = messages[-1]
        structured: object = read(said["structured"])
        if output is not None and structured is not None:
            structured = output.parse(answer.text)
        _charge(life, usage_from_json(said["own"]), usage_from_json(said["used"]))
        view.show_end(messages)
        life.draft.append_block([life.message, *messages])
        workflow = cast("JsonObject | None", read(said["workflow"]))
        await life.finish(
            answer, str(said["stop_reason"]), structured=structured, workflow=workflow
        )
        kept = life.draft.history
        carried = self._carried.get(_conversation_of(life))
        if carried is not None and len(kept) == said["remembers"]:
            carried.remembered[agent] = _KnownMemory(len(kept), kept[-1] if len(kept) else None)

    async def _turn_answer(
        self, life: TurnLife, view: TurnView, history: History, given: dict[str, Any]
    ) -> dict[str, Any]:
        """Return what a turn said; a workflow that remembers otherwise is updated first."""
        attempt = 0
        while True:
            carried = await self._conversation(life)
            known = carried.remembered.pop(given["agent"], None)
            given["remembers"], given["history"] = len(history), None
            is_new = known is None and all(one.is_template for one in history)
            if attempt or not (is_new or (known is not None and known.is_all_of(history))):
                redacted = self._runs.redactor.redacted
                given["history"] = [redacted(message_to_wire(one)) for one in history]
            key = life.origin.turn_id + (f"~{attempt}" if attempt else "")
            try:
                return await self._asking(life, view, carried, key, given)
            except _LostError:
                attempt += 1
                if self._carried.get(_conversation_of(life)) is carried:
                    del self._carried[_conversation_of(life)]

    async def _conversation(self, life: TurnLife) -> _CarriedConversation:
        """Return the workflow of the turn's conversation, started where there is none yet."""
        async with self._starting:
            await self._close_ended()
            version = self._cards.version
            found = self._carried.get(_conversation_of(life))
            if found is not None and found.version == version:
                return found
            if self._pinned is None or self._pinned[0] != version:
                self._pinned = version, await self._cards.pin()
            run_id = f"conversation-{token_hex(8)}"
            handle = await self._runs.converse(run_id, self._pinned[1], life.origin.agent)
            if found is not None:
                self._ended.append(found.handle)
            self._carried[_conversation_of(life)] = carried = _CarriedConversation(version, handle)
            # A server may have a conversation for each request.
            finalize(_conversation_of(life), self._ended.append, handle)
            return carried

    async def _asking(
        self,
        life: TurnLife,
        view: TurnView,
        carried: _CarriedConversation,
        key: str,
        given: dict[str, Any],
    ) -> dict[str, Any]:
        """Ask for a turn; its user is asked what it asks, and it is cancelled with this one."""
        run = carried.handle
        human = self._human_of(life)
        beside: list[asyncio.Task[None]] = []
        if human is not None:
            beside.append(asyncio.create_task(self._ask_user(carried, human)))
        if life.is_heard:
            beside.append(asyncio.create_task(self._watch(run, key, view)))
        try:
            said = await self._update(run, key, given)
        except asyncio.CancelledError:
            await asyncio.shield(_signal(run, "cancel_turn", key))
            raise
        finally:
            for task in beside:
                task.cancel()
                with suppress(asyncio.CancelledError, RunError):  # of a run that has ended
                    await task
        if life.is_heard:
            # What is missed now is shown from the messages of the turn.
            with suppress(RPCError, WorkflowQueryFailedError, TimeoutError):
                async with asyncio.timeout(_LAST_LOOK_SECONDS):
                    view.show_events(await self._runs.events(run.id, key, view.count))
        return said

    def _human_of(self, life: TurnLife) -> Human | None:
        return life.context.human or self._human

    async def _watch(self, run: WorkflowHandle[Any, Any], key: str, view: TurnView) -> None:
        """Show what happens in a turn while it runs; nothing depends on it."""
        known = set[str]()
        while True:
            await asyncio.sleep(SHOW_SECONDS)
            try:
                steps = await self._runs.shown_steps(run.id)
                events = await self._runs.events(run.id, key, view.count)
            except (RPCError, WorkflowQueryFailedError):
                continue  # no worker runs now, the server is away, or the worker is an older one
            try:
                # Steps first: a later event of one was not known when they were looked at.
                for step_id, details in steps.items():
                    if step_id in known:  # else the events of its start may be among these
                        view.show_step(details)
                known = set(steps)
                view.show_events(events)
            except Exception:  # the boundary of what the turn does not depend on
                log.exception("the progress of run `%s` cannot be shown", run.id)
                return

    async def _update(
        self, run: WorkflowHandle[Any, Any], key: str, given: dict[str, Any]
    ) -> dict[str, Any]:
        try:
            return cast("dict[str, Any]", await update(run, "turn", [key, given], key))
        except WorkflowUpdateFailedError as error:
            cause = error.cause
            if not isinstance(cause, ApplicationError):
                raise RunCancelledError(f"run `{run.id}` ended during the turn") from error
            if cause.type == _ENDED:
                await self._runs.result(run)  # raises why
                raise RunCancelledError(f"run `{run.id}` ended during the turn") from error
            if cause.type == OUT_OF_STEP:
                raise _LostError from error
            if cause.type == TURN_CANCELLED:
                raise RunCancelledError(f"the turn was cancelled in run `{run.id}`") from error
            raise fast_agent_error(cause, self._runs.redactor) from error
        except RPCError as error:
            raise _LostError from error

    async def _ask_user(self, carried: _CarriedConversation, human: Human) -> None:
        """Ask the user what the turns of a conversation ask, one question after the other."""
        run = carried.handle
        unanswered: str | None = None
        carried.askers += 1
        try:
            while True:
                await asyncio.sleep(QUESTION_SECONDS)
                # After an answer, it looks at once: another turn may have had others answered.
                while found := await self._new_question(carried):
                    unanswered, question = found
                    answer = await _answer_of(human, question_from_json(question), run.id)
                    await self._runs.answer(run.id, unanswered, answer.action, answer.content)
                    unanswered = None
        finally:
            carried.askers -= 1
            if not carried.askers:
                carried.asked.clear()  # a later history may use a key again
            elif unanswered is not None:
                carried.asked.discard(unanswered)  # a turn that goes on may have it answered

    async def _new_question(self, carried: _CarriedConversation) -> tuple[str, JsonObject] | None:
        """Return a question that no user was asked yet, with its key; its user is asked now."""
        known = carried.asked
        # A look that began before a question was found must not forget it by ending after.
        async with carried.looking:
            try:
                asked = await self._runs.questions(carried.handle.id)
            except (RPCError, WorkflowQueryFailedError):
                return None  # no worker runs or answers in time now, or the server is away
            known.intersection_update(asked)
            for key, question in asked.items():
                if key not in known:
                    known.add(key)
                    return key, question
        return None


async def _answer_of(human: Human, question: HumanRequest, run_id: str) -> HumanAnswer:
    """Ask a user; a way to ask that fails, which a program may bring, is an answer as well."""
    try:
        return await human.ask(question)
    except Exception:
        log.exception("the user of run `%s` cannot be asked", run_id)
        return HumanAnswer(action="cancel")


class _LostError(Exception):
    """The workflow has ended, or remembers another history."""


async def _signal(run: WorkflowHandle[Any, Any], name: str, *args: object) -> None:
    """Send a signal that may be lost: the server is away, or the workflow has ended."""
    with suppress(RPCError, TimeoutError):
        async with asyncio.timeout(_CLOSE_SECONDS):
            await run.signal(name, args=args)


def _conversation_of(life: TurnLife) -> object:
    return life.context.conversation


def _charge(life: TurnLife, own: Usage, tree: Usage) -> None:
    """Charge a turn's meters with what workers used."""
    counts: tuple[int, ...] = astuple(own)
    below = tuple(all_ - part for all_, part in zip(astuple(tree), counts, strict=True))
    for meter in life.meters:
        meter.count_earlier(counts)
    if any(below):
        for meter in life.context_below().meters:
            meter.count_earlier(below)
