"""The runs a Temporal server knows: listed, shown, watched, cancelled and resumed."""

from __future__ import annotations

from dataclasses import replace
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, cast

from temporalio.api.common.v1 import WorkflowExecution as ExecutionName
from temporalio.api.enums.v1 import ResetReapplyExcludeType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import WorkflowExecutionStatus as Status
from temporalio.client import WorkflowQueryFailedError
from temporalio.service import RPCError

from fast_agent.engine.engine import ENDED, RunEvent, RunFacts, StepFacts
from fast_agent.engine.temporal.workflow import WORKFLOW, fast_agent_error
from fast_agent.errors import RunError
from fast_agent.messages.json_message import message_from_wire
from fast_agent.models.step_model import usage_from_json
from fast_agent.steps.steps import Key

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from temporalio.api.common.v1 import Payload
    from temporalio.api.history.v1 import HistoryEvent
    from temporalio.client import WorkflowExecution

    from fast_agent.engine.engine import RunFilter, RunState, StepState
    from fast_agent.engine.temporal.runs import TemporalRuns
    from fast_agent.text.json_value import JsonObject, JsonValue

_STATES: Final[dict[Status, RunState]] = {
    Status.RUNNING: "running",
    Status.COMPLETED: "done",
    Status.CANCELED: "cancelled",
    Status.FAILED: "failed",
    Status.TERMINATED: "failed",
    Status.TIMED_OUT: "failed",
}
"""States of runs; a history that was continued in another one is not a separate run."""

_QUERIED: Final = {
    "running": "Running",
    "done": "Completed",
    "cancelled": "Canceled",
    "failed": "Failed",
}


class ServerRuns:
    """The runs of a queue of a Temporal server; see `Runs`.

    Args:
        runs: The connection, and how histories are read.
    """

    def __init__(self, runs: TemporalRuns) -> None:
        self._runs = runs
        self._client = runs.client

    async def runs(self, wanted: RunFilter) -> AsyncIterator[RunFacts]:
        """Return runs, the one that was started last first; see `Runs.runs`."""
        known = [_QUERIED[state] for state in wanted.states if state in _QUERIED]
        if wanted.states and not known:
            return  # the server has no such state
        query = self._query(wanted.name)
        if known:
            alike = " OR ".join(f"ExecutionStatus = '{state}'" for state in known)
            query = f"{query} AND ({alike})"
        count = 0
        try:
            async for one in self._client.list_workflows(query):
                if one.status not in _STATES:
                    continue
                yield await self._listed(one)
                count += 1
                if count == wanted.limit:
                    return
        except RPCError as error:
            raise _rejected(error) from error

    def _query(self, name: str) -> str:
        if set(name) & set("'\"\\"):
            raise RunError(f"there is no run `{name}`", hint="run ids contain no quotes")
        query = f"WorkflowType = '{WORKFLOW}' AND TaskQueue = '{self._runs.options.queue}'"
        return f"{query} AND WorkflowId STARTS_WITH '{name}'" if name else query

    async def _listed(self, one: WorkflowExecution) -> RunFacts:
        memo = cast("dict[str, str]", await one.memo())
        ended = one.close_time
        return RunFacts(
            id=one.id,
            batch=memo.get("batch", ""),
            item=0,
            key=memo.get("key", ""),
            agent=memo.get("agent", ""),
            message=self._runs.redactor.restored(memo.get("message", "")),
            state=_STATES[cast("Status", one.status)],
            attempt=1,
            edition=memo.get("edition"),
            output=None,
            error=None,
            used=None,
            cost=None,
            began=one.start_time.timestamp(),
            ended=None if ended is None else ended.timestamp(),
        )

    async def find(self, run_id: str) -> RunFacts:
        """Return a run with what it answered; see `Runs.find`.

        Raises:
            RunError: There is none, or there are several.
        """
        try:
            found = [one async for one in self._client.list_workflows(self._query(run_id))]
            found = [one for one in found if one.status in _STATES]
            exact = [one for one in found if one.id == run_id]
            # A resumed run has several histories; the newest comes first.
            ids = dict.fromkeys(one.id for one in exact or found)
            if not ids:
                raise RunError(
                    f"there is no run `{run_id}`",
                    hint="`fast-agent runs list --engine temporal` lists them",
                )
            if len(ids) > 1:
                raise RunError(
                    f"several runs start with `{run_id}`", hint=f"for example {', '.join(ids)[:80]}"
                )
            facts = await self._listed((exact or found)[0])
            return await self._with_result(facts)
        except RPCError as error:
            raise _rejected(error) from error

    async def _with_result(self, facts: RunFacts) -> RunFacts:
        if facts.state == "running":
            try:
                waits = bool(await self._runs.questions(facts.id))
            except (RPCError, WorkflowQueryFailedError):  # no worker runs that could say so
                waits = False
            return replace(facts, state="waiting") if waits else facts
        handle: Any = self._client.get_workflow_handle(facts.id)
        last = [event async for event in handle.fetch_history_events()][-1]
        if last.HasField("workflow_execution_completed_event_attributes"):
            payloads = last.workflow_execution_completed_event_attributes.result.payloads
            (value,) = await self._client.data_converter.decode(payloads)
            return self._answered(facts, cast("dict[str, Any]", value))
        if last.HasField("workflow_execution_failed_event_attributes"):
            failure = last.workflow_execution_failed_event_attributes.failure
            cause: Any = await self._client.data_converter.decode_failure(failure)
            error = fast_agent_error(cause, self._runs.redactor)
            return replace(
                facts,
                error={
                    "type": type(error).__name__,
                    "message": error.message,
                    "hint": error.hint,
                },
            )
        return facts

    def _answered(self, facts: RunFacts, value: dict[str, Any]) -> RunFacts:
        if "message" not in value:  # a conversation
            return facts
        read = self._runs.redactor.restored
        structured = read(value["structured"])
        text = message_from_wire(read(value["message"])).text
        return replace(
            facts,
            output=text if structured is None else structured,
            used=value["used"],
            cost=usage_from_json(value["used"]).cost,
        )

    async def steps(self, run_id: str) -> Sequence[StepFacts]:
        """Return the steps of a run; see `Runs.steps`."""
        found: dict[int, StepFacts] = {}
        reader = _StepReader(self._runs)
        try:
            async for event in self._client.get_workflow_handle(run_id).fetch_history_events():
                number, step = await reader.step_of(event)
                if step is not None:
                    found[number] = step
        except RPCError as error:
            raise _rejected(error) from error
        return list(found.values())

    async def tail(self, run_id: str, after: float = 0.0) -> AsyncIterator[RunEvent]:
        """Return what happens in a run as it happens, until its end; see `Runs.tail`."""
        reader = _StepReader(self._runs)
        handle = self._client.get_workflow_handle(run_id)
        try:
            async for event in handle.fetch_history_events(wait_new_event=True):
                _, step = await reader.step_of(event)
                if step is not None and step.at >= after:
                    yield RunEvent(step.at, step=step)
        except RPCError as error:
            raise _rejected(error) from error
        facts = await self.find(run_id)
        yield RunEvent(facts.ended or 0.0, state=facts.state)

    async def cancel(self, run_id: str) -> bool:
        """Cancel a run; see `Runs.cancel`."""
        facts = await self.find(run_id)
        if facts.state in ENDED:
            return False
        try:
            await self._runs.cancel(facts.id)
        except RPCError as error:
            raise _rejected(error) from error
        return True

    async def resume(self, run_id: str) -> bool:
        """Run a failed or cancelled run again from its first step without an answer.

        Steps that were answered before it are not executed again; of several at a time, those
        that began together with it are.

        Returns:
            Whether it had failed or was cancelled.

        Raises:
            RunError: There is no such run, or the server rejects it.
        """
        facts = await self.find(run_id)
        if facts.state not in {"failed", "cancelled"}:
            return False
        handle = self._client.get_workflow_handle(facts.id)
        try:
            events = [event async for event in handle.fetch_history_events()]
            await self._client.workflow_service.reset_workflow_execution(
                ResetWorkflowExecutionRequest(
                    namespace=self._client.namespace,
                    workflow_execution=ExecutionName(workflow_id=facts.id),
                    reason="fast-agent runs resume",
                    workflow_task_finish_event_id=_resume_point(events),
                    request_id=token_hex(16),
                    reset_reapply_exclude_types=[
                        ResetReapplyExcludeType.RESET_REAPPLY_EXCLUDE_TYPE_CANCEL_REQUEST
                    ],
                )
            )
        except RPCError as error:
            raise _rejected(error) from error
        return True


def _resume_point(events: Sequence[HistoryEvent]) -> int:
    """Return the decision that asked the first step without an answer, or the last decision.

    Raises:
        RunError: The run was never executed.
    """
    asked: dict[int, int] = {}
    points: list[int] = []
    decided = 0
    for event in events:
        if event.HasField("workflow_task_completed_event_attributes"):
            decided = event.event_id
        elif event.HasField("workflow_execution_cancel_requested_event_attributes"):
            points.append(decided)
        elif event.HasField("activity_task_scheduled_event_attributes"):
            scheduled = event.activity_task_scheduled_event_attributes
            asked[event.event_id] = scheduled.workflow_task_completed_event_id
        elif event.HasField("activity_task_completed_event_attributes"):
            del asked[event.activity_task_completed_event_attributes.scheduled_event_id]
        elif event.HasField("marker_recorded_event_attributes"):
            marker = event.marker_recorded_event_attributes
            if marker.HasField("failure"):
                points.append(marker.workflow_task_completed_event_id)
    point = min([*asked.values(), *points], default=decided)
    if not point:
        raise RunError("no worker has begun this run", hint="start a worker")
    return point


class _StepReader:
    """Reads steps from the events of a history, one after the other.

    Args:
        runs: How payloads are read.
    """

    def __init__(self, runs: TemporalRuns) -> None:
        self._runs = runs
        self._asked: dict[int, StepFacts] = {}
        self._tries: dict[int, int] = {}

    async def step_of(self, event: HistoryEvent) -> tuple[int, StepFacts | None]:
        """Return the step an event is about, and its number in the history; None if it is none."""
        at = event.event_time.seconds + event.event_time.nanos / 1e9
        kind = event.WhichOneof("attributes")
        facts: Any = getattr(event, str(kind))
        match kind:
            case "activity_task_scheduled_event_attributes":
                given = await self._value(facts.input.payloads)
                step = self._asked_step(given, at, given["asked"])
                self._asked[event.event_id] = step
                return event.event_id, step
            case "activity_task_started_event_attributes":
                self._tries[facts.scheduled_event_id] = facts.attempt
                return 0, None
            case "activity_task_completed_event_attributes":
                answer = await self._value(facts.result.payloads)
                return self._ended(facts.scheduled_event_id, "done", at, answer.get("gave"))
            case "activity_task_failed_event_attributes":
                gave = await self._failure(facts.failure)
                return self._ended(facts.scheduled_event_id, "failed", at, gave)
            case "activity_task_timed_out_event_attributes":
                return self._ended(facts.scheduled_event_id, "failed", at, None)
            case "activity_task_canceled_event_attributes":
                return self._ended(facts.scheduled_event_id, "cancelled", at, None)
            case "marker_recorded_event_attributes" if "result" in facts.details:
                answer = await self._value(facts.details["result"].payloads)
                if "place" not in answer:
                    return 0, None
                step = self._asked_step(answer["place"], at, answer["place"]["asked"])
                gave = cast("JsonValue", answer.get("gave"))
                return event.event_id, replace(step, state="done", gave=gave)
            case _:
                return 0, None

    def _ended(
        self, number: int, state: StepState, at: float, gave: JsonValue
    ) -> tuple[int, StepFacts]:
        asked = self._asked[number]
        used = gave.get("usage") if asked.key.kind == "model" and isinstance(gave, dict) else None
        tries = self._tries.get(number, 1)
        return number, replace(asked, state=state, at=at, tries=tries, used=used, gave=gave)

    def _asked_step(self, given: dict[str, Any], at: float, asked: JsonValue) -> StepFacts:
        key = Key(given["turn"], given["kind"], given["name"], int(given["number"]))
        return StepFacts(key, "begun", at, at, 1, None, asked, None)

    async def _value(self, payloads: Sequence[Payload]) -> dict[str, Any]:
        (value,) = await self._runs.client.data_converter.decode(payloads)
        return cast("dict[str, Any]", self._runs.redactor.restored(value))

    async def _failure(self, failure: Any) -> JsonObject:
        cause: Any = await self._runs.client.data_converter.decode_failure(failure)
        return {"type": str(cause.type), "message": str(cause.message)}


def _rejected(error: RPCError) -> RunError:
    return RunError(
        f"Temporal does not answer: {error.message}",
        hint="check that the server runs, and its namespace",
    )
