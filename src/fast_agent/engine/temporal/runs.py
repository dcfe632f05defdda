"""Runs as those who start them see them: pin an edition, start a run, wait, answer, cancel."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import (
    WorkflowFailureError,
    WorkflowQueryFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import (
    ApplicationError,
    TerminatedError,
    WorkflowAlreadyStartedError,
)
from temporalio.exceptions import CancelledError as TemporalCancelledError
from temporalio.service import RPCError, RPCStatusCode

from fast_agent.engine.edition import EditionChoices, live, pack_program
from fast_agent.engine.execute import EditionSteps
from fast_agent.engine.temporal.workflow import WORKFLOW, fast_agent_error
from fast_agent.errors import FastAgentError, RunError
from fast_agent.messages.json_message import message_from_wire, message_to_wire
from fast_agent.models.step_model import usage_from_json
from fast_agent.steps.parts import StepRedactor
from fast_agent.telemetry import current_trace

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from temporalio.client import Client, WorkflowHandle

    from fast_agent.engine.edition import CardProgram
    from fast_agent.engine.part_store import PartStore
    from fast_agent.engine.temporal.connection import TemporalOptions
    from fast_agent.messages.message import Message
    from fast_agent.models.model import Usage
    from fast_agent.text.json_value import JsonObject, JsonValue

T = TypeVar("T")

HEARTBEAT_SECONDS: Final = 10.0
"""How long a worker may be silent about a step before another one takes it over."""

RETRY_SECONDS: Final = 1.0
"""How often a client tries again whose server does not answer."""

READY_SECONDS: Final = 60.0
"""How long an update waits for a workflow whose last task failed."""

_TOO_LONG: Final = (
    "by default, a server holds about 8,000 steps of a turn: divide the task, or raise the limits"
    " of histories there"
)
_SHOWN_CHARACTERS: Final = 80
"""How much of a message lists of runs show."""

_POLL_SECONDS: Final = 15.0
"""How long a model that had its own workers is assumed to have them."""

_PASSING: Final = frozenset(
    {
        RPCStatusCode.UNAVAILABLE,
        RPCStatusCode.UNKNOWN,  # a connection that broke
        RPCStatusCode.CANCELLED,
        RPCStatusCode.ABORTED,
        RPCStatusCode.DEADLINE_EXCEEDED,
        RPCStatusCode.RESOURCE_EXHAUSTED,
    }
)


def traced() -> JsonObject:
    """Return the trace as a turn passes it to its steps; nothing without one."""
    trace = current_trace()
    return {} if trace is None else {"trace": trace}


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run returned.

    Args:
        message: The answer.
        structured: The value of a structured answer, or None.
        stop_reason: Why the turn ended.
        used: What it used, with all it started.
        steps: How many steps it took.
    """

    message: Message
    structured: JsonValue
    stop_reason: str
    used: Usage
    steps: int


class RunCancelledError(RunError):
    """The run was cancelled."""


@dataclass(frozen=True, slots=True)
class PinnedEdition:
    """An edition that every worker can load.

    Args:
        digest: Names it.
        models: The models its agents ask.
        queues: The queues its cards name.
    """

    digest: str
    models: tuple[str, ...]
    queues: tuple[str, ...] = ()


@dataclass(slots=True)
class TemporalRuns:
    """Starts runs, and waits for them; what it starts continues without it.

    Args:
        client: The connection to the server.
        options: Names the queues.
        store: Keeps editions.
        redactor: What is hidden in messages.
        heartbeat_seconds: How long a worker may be silent about a step.
    """

    client: Client
    options: TemporalOptions
    store: PartStore
    redactor: StepRedactor = field(default_factory=StepRedactor)
    heartbeat_seconds: float = HEARTBEAT_SECONDS
    _served: dict[str, tuple[float, bool]] = field(default_factory=dict[str, "tuple[float, bool]"])

    async def pin(
        self, program: CardProgram, choices: EditionChoices, *, tools: Iterable[Path] = ()
    ) -> PinnedEdition:
        """Keep the cards of a program for workers.

        Args:
            program: The program; its cards are loaded.
            choices: What the user chose over the cards.
            tools: Files and directories whose agents become tools of the receiver.

        Raises:
            FastAgentError: The cards cannot be run, or not by other machines.
        """
        facts: dict[str, str] = {}
        steps = EditionSteps(facts, replays=True, add=facts.__setitem__)
        async with live(program, choices, steps) as app:
            edition, specs = pack_program(program, choices, app.runtime, facts=facts, tools=tools)
        await asyncio.to_thread(self.store.put, {edition.digest: edition.data})
        models = dict.fromkeys(spec.text for spec in specs)
        configs = (card.config for card in program.load_set.cards.values())
        queues = {config.queue for config in configs if config.queue}
        return PinnedEdition(edition.digest, tuple(models), tuple(sorted(queues)))

    async def unserved(self, edition: PinnedEdition) -> list[str]:
        """Return the queues of an edition's cards that no worker serves now."""
        return [name for name in edition.queues if not await self.is_served(name)]

    async def start(
        self,
        run_id: str,
        edition: PinnedEdition,
        agent: str,
        message: Message,
        *,
        schema: JsonObject | None = None,
        memo: Mapping[str, str] | None = None,
        asks: bool = True,
    ) -> WorkflowHandle[Any, Any]:
        """Start a run, or find the one of this id that was started before.

        Args:
            run_id: Names the run: starting it twice starts it once. One that failed is run again.
            edition: Its cards.
            agent: The agent that answers.
            message: What it is asked.
            schema: The JSON Schema of the answer, or None.
            memo: What lists of runs show of it.
            asks: Whether its questions wait for a user; else there is none.

        Raises:
            RunError: The server rejects the run.
        """
        given = {
            **await self._options_of(edition),
            "agent": agent,
            "message": self.redactor.redacted(message_to_wire(message)),
            "schema": schema,
            "asks": asks,
            **traced(),
        }
        text = self.redactor.redact(" ".join(message.text.split())[:_SHOWN_CHARACTERS])
        shown = {"agent": agent, "message": text, **(memo or {})}
        return await self._started(run_id, given, shown)

    async def converse(
        self, run_id: str, edition: PinnedEdition, agent: str
    ) -> WorkflowHandle[Any, Any]:
        """Start a conversation, whose turns are asked for by updates.

        Args:
            run_id: Names it.
            edition: Its cards.
            agent: The agent of its first turn, for lists of runs.

        Raises:
            RunError: The server rejects it.
        """
        return await self._started(run_id, await self._options_of(edition), {"agent": agent})

    async def _options_of(self, edition: PinnedEdition) -> dict[str, Any]:
        offset = datetime.now().astimezone().utcoffset()
        return {
            "edition": edition.digest,
            "queue": self.options.queue,
            "model_queues": [one for one in edition.models if await self.is_served(one)],
            "heartbeat_seconds": self.heartbeat_seconds,
            "utc_offset": 0.0 if offset is None else offset.total_seconds(),
        }

    async def _started(
        self, run_id: str, given: dict[str, Any], memo: dict[str, str]
    ) -> WorkflowHandle[Any, Any]:
        try:
            return await with_retries(
                lambda: self.client.start_workflow(
                    WORKFLOW,
                    given,
                    id=run_id,
                    task_queue=self.options.queue,
                    id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                    id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY,
                    memo={"edition": given["edition"], **memo},
                    request_eager_start=True,
                )
            )
        except WorkflowAlreadyStartedError:
            return self.client.get_workflow_handle(run_id)

    async def result(self, run: WorkflowHandle[Any, Any]) -> RunResult:
        """Wait until a run has ended, also while the server is down.

        Raises:
            RunCancelledError: It was cancelled.
            FastAgentError: It failed; the error is the one of the run.
        """
        try:
            return self._read(cast("dict[str, Any]", await with_retries(run.result)))
        except WorkflowFailureError as error:
            raise self._failure(error, run.id) from error

    async def answer(
        self, run_id: str, key: str, action: str, content: JsonObject | None = None
    ) -> None:
        """Answer an open question of a run, also while the server is down.

        Args:
            run_id: The run.
            key: The question.
            action: `accept`, `decline` or `cancel`.
            content: The answer, where it is accepted.

        Raises:
            RunError: The run has ended.
        """
        run: Any = self.client.get_workflow_handle(run_id)
        # The first answer counts, however often one is sent.
        await with_retries(lambda: run.signal("answer", args=[key, action, content]))

    async def questions(self, run_id: str) -> dict[str, JsonObject]:
        """Return the open questions of a run, by their keys."""
        run: Any = self.client.get_workflow_handle(run_id)
        return cast("dict[str, JsonObject]", await run.query("questions"))

    async def shown_steps(self, run_id: str) -> dict[str, JsonObject]:
        """Return what the steps under way of a run have shown so far, by their ids."""
        found = await self.client.get_workflow_handle(run_id).describe()
        shown: dict[str, JsonObject] = {}
        for step in found.raw_description.pending_activities:
            details = step.heartbeat_details.payloads
            if details:
                (value,) = await self.client.data_converter.decode(details)
                shown[step.activity_id] = cast("JsonObject", self.redactor.restored(value))
        return shown

    async def events(self, run_id: str, key: str, after: int) -> list[JsonObject]:
        """Return the events of a turn of a conversation behind a number of them."""
        run: Any = self.client.get_workflow_handle(run_id)
        found = self.redactor.restored(await run.query("events", args=[key, after]))
        return cast("list[JsonObject]", found)

    async def cancel(self, run_id: str) -> None:
        """Cancel a run: its steps are notified, and its turn ends as a cancelled one."""
        await self.client.get_workflow_handle(run_id).cancel()

    async def is_served(self, name: str) -> bool:
        """Whether a model, or the queue of a card, has its own workers now."""
        now = asyncio.get_running_loop().time()
        known = self._served.get(name)
        if known is None or known[0] < now:
            queue = self.options.side_queue(name)
            served = bool(await self._is_polled(queue, TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY))
            known = now + _POLL_SECONDS if served else now, served
            self._served[name] = known
        return known[1]

    async def has_workers(self) -> bool:
        """Whether workers take runs now; True where the server does not say."""
        found = await self._is_polled(self.options.queue, TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW)
        return found is not False

    async def _is_polled(self, queue: str, kind: TaskQueueType.ValueType) -> bool | None:
        """Whether workers took something from a queue lately; None where the server is silent."""
        request = DescribeTaskQueueRequest(
            namespace=self.client.namespace,
            task_queue=TaskQueue(name=queue),
            task_queue_type=kind,
        )
        try:
            found = await self.client.workflow_service.describe_task_queue(request)
        except RPCError:
            return None
        return len(found.pollers) > 0

    def _read(self, value: dict[str, Any]) -> RunResult:
        restored = self.redactor.restored
        return RunResult(
            message_from_wire(restored(value["message"])),
            restored(value["structured"]),
            str(value["stop_reason"]),
            usage_from_json(value["used"]),
            int(value["steps"]),
        )

    def _failure(self, error: WorkflowFailureError, run_id: str) -> FastAgentError:
        cause = error.cause
        if isinstance(cause, ApplicationError):
            return fast_agent_error(cause, self.redactor)
        if isinstance(cause, TemporalCancelledError):
            return RunCancelledError(f"run `{run_id}` was cancelled")
        if isinstance(cause, TerminatedError):
            hint = _TOO_LONG if "exceeds limit" in cause.message else None
            return RunError(f"run `{run_id}` was terminated: {cause.message}", hint=hint)
        return RunError(f"run `{run_id}` failed: {cause}")


async def update(run: Any, name: str, args: Sequence[object], update_id: str) -> Any:
    """Update a workflow, also while the server is down or has as many open updates as it takes.

    Args:
        run: The workflow.
        name: The update.
        args: What it is given.
        update_id: Makes it one update, however often it is requested.

    Raises:
        WorkflowUpdateFailedError: The workflow refused it, or has ended.
        RPCError: There is no such workflow, or it had ended before.
        RunError: The server rejects it.
    """
    end = monotonic() + READY_SECONDS
    while True:
        try:
            return await run.execute_update(name, args=args, id=update_id)
        except WorkflowUpdateRPCTimeoutOrCancelledError as error:
            if isinstance(error.__cause__, asyncio.CancelledError):
                raise error.__cause__ from None
            await asyncio.sleep(RETRY_SECONDS)
        except RPCError as error:
            if error.status == RPCStatusCode.NOT_FOUND:
                raise
            # A worker that computed for too long failed a task, which the server tries again.
            is_unready = error.status == RPCStatusCode.FAILED_PRECONDITION
            await wait_or_raise(error, passes=is_unready and monotonic() < end)


async def with_retries(request: Callable[[], Awaitable[T]]) -> T:
    """Send a request until the server, or a worker that it asks, has answered.

    Raises:
        RunError: The server rejects it.
    """
    while True:
        try:
            return await request()
        except WorkflowQueryFailedError:  # a worker was too busy to answer in time
            await asyncio.sleep(RETRY_SECONDS)
        except RPCError as error:
            await wait_or_raise(error)


async def wait_or_raise(error: RPCError, *, passes: bool = False) -> None:
    """Wait where the server may answer later.

    Args:
        error: What the server says.
        passes: Whether it may answer later in any case.

    Raises:
        RunError: It never will.
    """
    if not passes and error.status not in _PASSING:
        raise RunError(f"Temporal rejects the request: {error.message}") from error
    await asyncio.sleep(RETRY_SECONDS)
