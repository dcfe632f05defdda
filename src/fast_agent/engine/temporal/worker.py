"""Workers: processes that run the workflows of runs and execute their steps."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from logging import getLogger
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, cast

from temporalio import activity
from temporalio.api.workflowservice.v1 import (
    DescribeWorkerDeploymentRequest,
    SetWorkerDeploymentCurrentVersionRequest,
)
from temporalio.common import WorkerDeploymentVersion
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import (
    ExecuteWorkflowInput,
    Interceptor,
    Worker,
    WorkerDeploymentConfig,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)

from fast_agent.engine.edition import live, load_edition, settings_digests, unpack_edition
from fast_agent.engine.execute import (
    DescribedStep,
    EditionSteps,
    StepExecutor,
    next_digests,
    part_digests,
)
from fast_agent.engine.part_store import missing_part
from fast_agent.engine.temporal.progress import SHOW_SECONDS, StepProgress
from fast_agent.engine.temporal.questions import asked_by
from fast_agent.engine.temporal.runs import update, with_retries
from fast_agent.engine.temporal.workflow import (
    LOOP_VERSION,
    AgentRun,
    LoopEdition,
    application_error,
    editions,
)
from fast_agent.errors import ConfigError, FastAgentError, ModelError, RunError
from fast_agent.steps.parts import StepRedactor
from fast_agent.steps.steps import interrupted, title_of
from fast_agent.telemetry import caller_trace
from fast_agent.tools.human import HumanAnswer, question_to_json
from fast_agent.tools.permission import is_asked_first
from fast_agent.tools.result import describe_error
from fast_agent.tools.tool import no_progress

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Container, Coroutine, Mapping
    from pathlib import Path

    from temporalio.client import Client
    from temporalio.exceptions import ApplicationError

    from fast_agent.agents.events import Listener
    from fast_agent.engine.edition import CardProgram, Manifest
    from fast_agent.engine.execute import StepAnswer
    from fast_agent.engine.part_store import PartStore
    from fast_agent.engine.temporal.connection import TemporalOptions
    from fast_agent.text.json_value import JsonValue
    from fast_agent.tools.human import HumanRequest

log = getLogger(__name__)

MAX_TRIES: Final = 8
"""How often a model request is sent that fails in a way that may pass."""

MAX_QUOTA_SECONDS: Final = 6 * 3600.0
"""The longest time a step waits for the quota of a provider."""

DRAIN_SECONDS: Final = 30.0
"""How long running steps may take when a worker is stopped, in seconds."""

_MAX_UNEXPECTED: Final = 3
"""How often a step is tried that fails for an unknown reason: without a bound, its run hangs."""

_MAX_POLLS: Final = 200
_POLL_SECONDS: Final = 0.1
_NOT_YET: Final = frozenset(
    {
        RPCStatusCode.NOT_FOUND,
        RPCStatusCode.FAILED_PRECONDITION,  # another worker sets it now
        RPCStatusCode.UNAVAILABLE,
        RPCStatusCode.RESOURCE_EXHAUSTED,
    }
)
_PLACE: Final = ("turn", "kind", "name", "number", "asked")
_BEATS: Final = 3
"""Heartbeats in the time after which a worker counts as dead."""


class NewProgram(Protocol):
    """Makes the program that loads an edition, with the configuration of this machine."""

    def __call__(self, workspace: Path | None) -> CardProgram:
        """Make a program.

        Args:
            workspace: Its working directory; None is that of the worker.
        """
        ...


@dataclass(frozen=True, slots=True)
class LoadedEdition:
    """An edition that a worker has loaded.

    Args:
        loop: What the loop of its runs needs.
        executor: Executes their steps.
        tracing: Traces the steps, or None. The loop is not traced: a replay would do so again.
    """

    loop: LoopEdition
    executor: StepExecutor
    tracing: Listener | None


class EditionHost:
    """The editions of a worker, loaded when a run needs them: `async with EditionHost(…)`.

    Args:
        store: Keeps the editions.
        home: The directory they are unpacked in.
        new_program: Makes the programs that load them.
        is_sealed: Whether what steps carry is encrypted; else secrets are hidden in it.
    """

    def __init__(
        self, store: PartStore, home: Path, new_program: NewProgram, *, is_sealed: bool
    ) -> None:
        self._store = store
        self._home = home
        self._new_program = new_program
        self._is_sealed = is_sealed
        self._loading: dict[str, asyncio.Task[None]] = {}
        self._loaded: dict[str, asyncio.Future[LoadedEdition]] = {}
        self._closing = asyncio.Event()
        self._event_loop = asyncio.get_running_loop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing.set()
        await asyncio.gather(*self._loading.values(), return_exceptions=True)

    def loop(self, digest: str) -> LoopEdition:
        """Return an edition to workflow code, which runs in a thread; see `Editions.loop`."""
        found = self._loaded.get(digest)
        if found is not None and found.done():
            return found.result().loop
        # Loading takes less than the two seconds after which the SDK suspects a deadlock. If it
        # does not, the task is tried again, and the edition is there by then.
        return asyncio.run_coroutine_threadsafe(self.get(digest), self._event_loop).result().loop

    async def get(self, digest: str) -> LoadedEdition:
        """Return an edition, loading it first where that is needed.

        Raises:
            FastAgentError: It cannot be loaded; the next call tries again.
        """
        future = self._loaded.get(digest)
        if future is None:
            future = self._loaded[digest] = self._event_loop.create_future()
            # A separate task: what is open for the agents is closed by the task that opened it.
            self._loading[digest] = asyncio.create_task(self._hold(digest, future))
        return await asyncio.shield(future)

    async def _hold(self, digest: str, loaded: asyncio.Future[LoadedEdition]) -> None:
        """Keep an edition live until the worker ends."""
        try:
            async with AsyncExitStack() as stack:
                loaded.set_result(await self._load(digest, stack))
                await self._closing.wait()
        except BaseException as error:
            if loaded.done():
                raise
            del self._loaded[digest]
            loaded.set_exception(error)

    async def _load(self, digest: str, stack: AsyncExitStack) -> LoadedEdition:
        data = (await asyncio.to_thread(self._store.get, [digest])).get(digest)
        if data is None:
            raise missing_part(digest)
        files, manifest = await asyncio.to_thread(unpack_edition, digest, data, self._home)
        deciding = self._program(files, manifest, files / manifest.workspace)
        acting = self._program(files, manifest, None)
        _check_settings(acting, manifest)
        enter, choices, facts = stack.enter_async_context, manifest.choices, manifest.facts
        loop = await enter(live(deciding, choices, EditionSteps(facts, replays=True)))
        app = await enter(live(acting, choices, EditionSteps(facts), StepHuman()))
        cards = deciding.load_set.cards
        for name in cards:
            # Made here: workflow code must not read files while it runs.
            loop.runtime.agent(name)
        tracing = await enter(acting.traced(log.warning))
        executor = StepExecutor(app.runtime, acting.workspace, self._redactor(acting), retries=0)
        stack.push_async_callback(executor.aclose)
        log.info("loaded edition `%s`: %s", digest, ", ".join(cards))
        queues = {name: card.config.queue for name, card in cards.items() if card.config.queue}
        deciding_loop = LoopEdition(loop.runtime, self._redactor(deciding), queues)
        return LoadedEdition(deciding_loop, executor, tracing)

    def _program(self, files: Path, manifest: Manifest, workspace: Path | None) -> CardProgram:
        program = self._new_program(workspace)
        load_edition(program, files, manifest)
        return program

    def _redactor(self, program: CardProgram) -> StepRedactor:
        secrets = () if self._is_sealed else program.secrets()
        return StepRedactor(secrets, str(program.workspace))


def _check_settings(program: CardProgram, manifest: Manifest) -> None:
    """Check that runs do here what they do where they were started.

    Raises:
        ConfigError: A setting that decides what they do is another one.
    """
    own = settings_digests(program.settings)
    other = [name for name, digest in manifest.settings.items() if own.get(name) != digest]
    if other:
        raise ConfigError(
            f"the configuration of this worker differs from the client's in `{other[0]}`",
            hint="start the worker with the same configuration file; keys and addresses may differ",
        )


_acts_once: ContextVar[bool] = ContextVar("whether the step may not be repeated once it acts")
_asks: ContextVar[asyncio.Event] = ContextVar("set when a local step asks the user")
_asked: ContextVar[tuple[str, Counter[str]] | None] = ContextVar(
    "what the keys of the step's questions begin with, and how often each was asked; or no user"
)


class StepHuman:
    """The way from a step to the user of its run: the workflow asks, and keeps the answer."""

    async def ask(self, request: HumanRequest) -> HumanAnswer:
        """Ask, and wait for the answer; without a user, the answer is `cancel`."""
        asking = _asked.get()
        if asking is None:
            return HumanAnswer(action="cancel")
        info = activity.info()
        if info.is_local:
            # The workflow hears nothing while a local activity runs: the step starts again as
            # another kind of activity, and this attempt is cancelled.
            _asks.get().set()
            await asyncio.Event().wait()
        run = _run_of(info)
        step, asked = asking
        asked[request.message] += 1
        number = asked[request.message]
        key = f"{step}{request.message}" + (f"\n{number}" if number > 1 else "")
        is_first = _acts_once.get() and is_asked_first()
        digest = sha256(key.encode()).hexdigest()
        args = [key, question_to_json(request), is_first]
        given = await update(run, "question", args, digest)
        if is_first:
            await update(run, "act", [key], f"{digest}-{info.attempt}")
        return HumanAnswer(action=given["action"], content=given["content"])


def _run_of(info: activity.Info) -> Any:
    """Return the workflow that a step belongs to."""
    return activity.client().get_workflow_handle(str(info.workflow_id), run_id=info.workflow_run_id)


async def _has_not_acted(info: activity.Info, step: str) -> bool:
    """Whether a former attempt got no further than its first question to the user."""
    run = _run_of(info)
    may_act = await with_retries(lambda: run.query("may_act"))
    return any(one.startswith(step) for one in may_act)


class StepActivities:
    """The activities: each executes a step of one kind.

    Args:
        host: The editions.
        store: Keeps the parts of questions.
    """

    def __init__(self, host: EditionHost, store: PartStore) -> None:
        self._host = host
        self._store = store

    @activity.defn(name="model")
    async def model(self, given: dict[str, Any]) -> dict[str, Any]:
        """Ask a model."""
        return await self._execute(given)

    @activity.defn(name="tool")
    async def tool(self, given: dict[str, Any]) -> dict[str, Any]:
        """Call a tool."""
        return await self._execute(given)

    @activity.defn(name="read")
    async def read(self, given: dict[str, Any]) -> dict[str, Any]:
        """Read what a server, a page or a file holds."""
        return await self._execute(given)

    @activity.defn(name="hook")
    async def hook(self, given: dict[str, Any]) -> dict[str, Any]:
        """Run a hook."""
        return await self._execute(given)

    @activity.defn(name="write")
    async def write(self, given: dict[str, Any]) -> dict[str, Any]:
        """Write a file."""
        return await self._execute(given)

    @property
    def all(self) -> list[Any]:
        """Every activity."""
        return [self.model, self.tool, self.read, self.hook, self.write]

    async def _execute(self, given: dict[str, Any]) -> dict[str, Any]:
        info = activity.info()
        step = DescribedStep(
            run=given.get("run") or str(info.workflow_id),
            edition=given["edition"],
            kind=given["kind"],
            name=given["name"],
            agent=given["agent"],
            turn=given["turn"],
            number=given["number"],
            asked=given["asked"],
            pieces=given["pieces"],
        )
        shown = StepProgress(step.agent, step.turn_id, step.name) if given.get("shows") else None
        acts_once = bool(given.get("acts_once"))
        _acts_once.set(acts_once)
        questions, has_user = asked_by(given), bool(given.get("asks", True))
        _asked.set((questions, Counter()) if has_user else None)
        try:
            async with _beating(info, shown):
                if acts_once and info.attempt > 1 and not await _has_not_acted(info, questions):
                    raise interrupted(title_of(step.kind, step.name, step.asked))
                edition = await self._host.get(step.edition)
                known = edition.executor.known(step)
                parts = await self._parts(step, known)
                if shown is not None:
                    shown.redact = edition.loop.redactor.redact
                work = edition.executor.execute(
                    step,
                    parts,
                    known,
                    on_delta=None if shown is None else shown.on_delta,
                    progress=no_progress if shown is None else shown.on_progress,
                    human=StepHuman() if has_user else None,
                    listener=edition.tracing,
                )
                with caller_trace(given.get("trace")):
                    answer = await (_execute_unless_asking(work) if info.is_local else work)
        except FastAgentError as error:
            raise _failure(error, info.attempt) from error
        except Exception as error:  # the boundary of a step
            if info.attempt < _MAX_UNEXPECTED and not acts_once:
                raise
            message = f"a step of agent `{step.agent}` failed: {describe_error(error)}"
            raise application_error(RunError(message)) from error
        if answer is None:
            return {"elsewhere": True}
        said: dict[str, Any] = {"gave": answer.gave, "pieces": dict(answer.pieces)}
        if info.is_local:
            # The history does not hold what a local activity was given.
            said["place"] = {name: given[name] for name in _PLACE}
        return said

    async def _parts(self, step: DescribedStep, known: Container[str]) -> Mapping[str, JsonValue]:
        """Keep the new parts of a question, and return all it names that are not known.

        Raises:
            RunError: One is missing.
        """
        if not step.pieces and not part_digests(step.asked):
            return {}
        # Once for all of them: a part leads to the next, and a long conversation has thousands.
        return await asyncio.to_thread(self._store_and_read, step, known)

    def _store_and_read(
        self, step: DescribedStep, known: Container[str]
    ) -> Mapping[str, JsonValue]:
        parts = dict(step.pieces)
        if parts:
            self._store.put({one: json.dumps(value).encode() for one, value in parts.items()})
        named = list(part_digests(step.asked))
        for value in step.pieces.values():
            named.extend(next_digests(value))
        wanted = {one for one in named if one not in parts and one not in known}
        while wanted:
            found = self._store.get(wanted)
            missing = wanted - found.keys()
            if missing:
                raise missing_part(min(missing))
            read = {one: cast("JsonValue", json.loads(value)) for one, value in found.items()}
            parts |= read
            wanted = {
                digest
                for value in read.values()
                for digest in next_digests(value)
                if digest not in parts and digest not in known
            }
        return parts


async def _execute_unless_asking(work: Coroutine[Any, Any, StepAnswer]) -> StepAnswer | None:
    """Execute a local step; None where it asks the user, and has to start again elsewhere."""
    asks = asyncio.Event()
    _asks.set(asks)
    working = asyncio.ensure_future(work)
    asking = asyncio.ensure_future(asks.wait())
    try:
        await asyncio.wait((working, asking), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        return None
    finally:
        asking.cancel()
        if not working.done():
            working.cancel()
            await asyncio.wait((working,))


@asynccontextmanager
async def _beating(info: activity.Info, shown: StepProgress | None) -> AsyncGenerator[None]:
    """Report that the step is alive; without it, no cancellation reaches an activity.

    Args:
        info: The activity.
        shown: What the step shows while it runs, or None where no client watches.
    """
    timeout = info.heartbeat_timeout
    if info.is_local or timeout is None:
        yield
        return
    seconds = timeout.total_seconds() / _BEATS

    async def beat() -> None:
        loop = asyncio.get_running_loop()
        due = 0.0
        while True:
            if shown is not None and shown.is_new:
                activity.heartbeat(shown.details())
                due = loop.time() + seconds
            elif loop.time() >= due:
                activity.heartbeat(*([] if shown is None else [shown.details()]))
                due = loop.time() + seconds
            await asyncio.sleep(seconds if shown is None else min(seconds, SHOW_SECONDS))

    task = asyncio.create_task(beat())
    try:
        yield
    finally:
        task.cancel()


def _failure(error: FastAgentError, attempt: int) -> ApplicationError:
    """Return how Temporal is to treat an error: it is the only one that sends requests again."""
    if not isinstance(error, ModelError):
        return application_error(error)
    wait = error.retry_after
    if error.is_quota:
        if wait is None or wait > MAX_QUOTA_SECONDS:
            return application_error(error)
    elif not error.is_passing or attempt >= MAX_TRIES:
        return application_error(error)
    delay = None if wait is None else timedelta(seconds=wait)
    return application_error(error, non_retryable=False, next_retry_delay=delay)


class EditionInterceptor(Interceptor):
    """Gives workflow code the editions of its worker.

    Args:
        host: The editions.
    """

    def __init__(self, host: EditionHost) -> None:
        self._host = host

    def workflow_interceptor_class(
        self,
        input: WorkflowInterceptorClassInput,  # noqa: A002 (named so by the SDK)
    ) -> type[WorkflowInboundInterceptor]:
        """Return the class whose instances surround workflows."""
        del input
        host = self._host

        class WithEditions(WorkflowInboundInterceptor):
            async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:  # noqa: A002
                editions.set(host)
                return await super().execute_workflow(input)

        return WithEditions


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """What a worker does.

    Args:
        queues: The models and the queues of cards whose steps it executes, and nothing else; empty
            for everything that has no workers of its own.
        slots: Most steps at a time.
        requests_per_second: Most steps of each of its queues in a second, over all workers of the
            queue; None for no bound.
        max_cached_runs: Maximum number of runs in memory; others are replayed when they continue.
        build_id: The version of the loop, a number; runs end in the version they began in.
        drain_seconds: How long running steps may take when the worker is stopped.
    """

    queues: tuple[str, ...] = ()
    slots: int = 40
    requests_per_second: float | None = None
    max_cached_runs: int = 1000
    build_id: str = LOOP_VERSION
    drain_seconds: float = DRAIN_SECONDS


async def run_worker(
    client: Client,
    temporal: TemporalOptions,
    options: WorkerOptions,
    host: EditionHost,
    store: PartStore,
    stop: asyncio.Event,
    *,
    on_start: Callable[[], None] | None = None,
) -> None:
    """Run a worker until it is stopped; running steps may finish.

    Args:
        client: The connection to the server.
        temporal: Names the queues.
        options: What the worker does.
        host: The editions.
        store: Keeps the parts of questions.
        stop: Set when the worker is to end.
        on_start: Called when it takes work.
    """
    activities = StepActivities(host, store).all
    # One thread: the agents of an edition are shared by all runs, and made for one thread.
    with ThreadPoolExecutor(1, "workflows") as executor:
        queues = [temporal.side_queue(name) for name in options.queues]
        version = WorkerDeploymentConfig(
            WorkerDeploymentVersion(temporal.queue, options.build_id), use_worker_versioning=True
        )
        workers = [
            Worker(
                client,
                task_queue=queue or temporal.queue,
                activities=activities,
                workflows=[] if queue else [AgentRun],
                workflow_task_executor=executor,
                interceptors=[EditionInterceptor(host)],
                max_concurrent_activities=options.slots,
                max_concurrent_workflow_tasks=None if queue else 20,
                max_cached_workflows=0 if queue else options.max_cached_runs,
                # The SDK holds heartbeats, and what they show, back for eight seconds of ten.
                max_heartbeat_throttle_interval=timedelta(seconds=SHOW_SECONDS),
                max_task_queue_activities_per_second=options.requests_per_second,
                graceful_shutdown_timeout=timedelta(seconds=options.drain_seconds),
                deployment_config=None if queue else version,
            )
            for queue in queues or [None]
        ]
        async with AsyncExitStack() as stack:
            for worker in workers:
                await stack.enter_async_context(worker)
            if not queues:
                await _make_current(client, temporal.queue, options.build_id)
            if on_start is not None:
                on_start()
            await stop.wait()


async def _make_current(client: Client, deployment: str, build_id: str) -> None:
    """Start new runs in this version of the loop; those that started in another stay there.

    Raises:
        ConfigError: The server does not know versions of workers.
    """
    service = client.workflow_service
    for _ in range(_MAX_POLLS):
        try:
            described = await service.describe_worker_deployment(
                DescribeWorkerDeploymentRequest(
                    namespace=client.namespace, deployment_name=deployment
                )
            )
            current = described.worker_deployment_info.routing_config
            known = current.current_deployment_version.build_id
            if known.isdecimal() and int(known) >= int(build_id):
                return
            await service.set_worker_deployment_current_version(
                SetWorkerDeploymentCurrentVersionRequest(
                    namespace=client.namespace,
                    deployment_name=deployment,
                    build_id=build_id,
                    conflict_token=described.conflict_token,
                    identity=client.identity,
                    ignore_missing_task_queues=True,
                )
            )
        except RPCError as error:
            if error.status not in _NOT_YET:
                raise ConfigError(
                    f"the server does not accept workers of version {build_id}: {error.message}",
                    hint="Temporal 1.29 or newer is needed, with worker deployments enabled",
                ) from error
            await asyncio.sleep(_POLL_SECONDS)  # the server does not know this worker yet
        else:
            return
    raise ConfigError("the server does not accept this worker: it does not list its version")
