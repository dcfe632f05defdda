"""One run of `fast-agent batch`: read the items, run what is not answered yet, write the rows."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from base64 import b64decode
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import fields, replace
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, cast

import click

from fast_agent.cli import card_options
from fast_agent.cli.card_options import CardOptions
from fast_agent.cli.output import ErrorCollector, prints_apart, report_error, standard_output
from fast_agent.cli.process import show_log
from fast_agent.errors import ConfigError, FastAgentError
from fast_agent.text.frozen import frozen
from fast_agent.text.wording import closest, did_you_mean

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Mapping
    from contextlib import AbstractAsyncContextManager

    from anyio import CancelScope

    from fast_agent.agent_app import AgentApp
    from fast_agent.agents.events import Listener
    from fast_agent.agents.output import OutputShape
    from fast_agent.app import FastAgent
    from fast_agent.cli.output import Output
    from fast_agent.cli.running.progress import BatchProgress
    from fast_agent.engine.batch import Ask, Batch
    from fast_agent.engine.batch_input import Item
    from fast_agent.engine.engine import RunAnswer
    from fast_agent.engine.model_requests import ModelRequests
    from fast_agent.engine.run_rows import RunRow
    from fast_agent.engine.run_store import RunStore
    from fast_agent.engine.temporal.runs import RunResult
    from fast_agent.steps.parts import StepRedactor
    from fast_agent.steps.steps import Steps
    from fast_agent.text.json_value import JsonValue

CONCURRENCY: Final = 10
TEMPORAL_CONCURRENCY: Final = 80
"""Items at a time on Temporal: twice the slots of a worker, so that none waits for the client."""

ATTACH_SECONDS: Final = 0.2
"""How often a client shows the progress of a batch that another process runs."""

DRAIN_SECONDS: Final = 10.0
"""How long a batch that a signal stops waits for the requests under way."""

_OF_ONE_LIFE: Final = frozenset(
    {"limit_cost", "limit_tokens", "max_errors", "retry_failed", "dry_run", "only", "trust"}
)
"""Options that are those of one process, not of the batch."""

_PATHS: Final = frozenset({"source", "target", "json_schema", "config_path"})


def runs_directory() -> Path:
    """Return the directory of durable runs."""
    from fast_agent.config.home import home_directory

    return home_directory(os.environ) / "runs"


@frozen(kw_only=True)
class BatchCommand(CardOptions):
    """The options of `fast-agent batch`, and what it does with them."""

    source: Path
    target: Path
    agent: str | None
    concurrency: int | None
    id_field: str | None
    json_schema: Path | None
    offset: int
    limit: int | None
    sample: int | None
    seed: int
    include_input: bool
    retry_failed: bool
    max_errors: str | None
    limit_cost: float | None
    limit_tokens: int | None
    dry_run: bool
    output: str
    engine: str = "embedded"
    temporal_address: str | None = None
    allow: tuple[str, ...] = ()
    only: frozenset[str] | None = None

    def receiver(self) -> str | None:
        """Return the agent that answers."""
        return self.agent

    def run(self) -> None:
        """Do it.

        Raises:
            FastAgentError: Something was wrong, or the batch stopped before its end.
            click.UsageError: The options do not go together.
        """
        from fast_agent.engine.batch_input import FORMS

        if self.target.suffix.lower() not in FORMS:
            raise click.UsageError(
                f"--output has no supported extension; use one of {', '.join(FORMS)}"
            )
        show_log(quiet=self.quiet)
        shape: OutputShape | None = None
        items: list[Item] = []
        with ErrorCollector() as faults:
            program = self.program(faults)
            with faults.collect():
                self._check_allowed()
            with faults.collect():
                self._check_target()
            with faults.collect():
                if self.json_schema is not None:
                    from fast_agent.cli.running.structured import read_schema

                    shape = read_schema(self.json_schema)
            with faults.collect():
                items = self._items(program)
        if self.dry_run:
            self._estimate(program, items)
            return
        from fast_agent.cli import process as event_loop
        from fast_agent.engine.run_steps import PausedError

        try:
            with prints_apart() as out, self._store(program) as store:
                event_loop.run(self._run_batch, program, store, items, shape, out)
        except PausedError as error:
            if error.signal is None:
                raise
            report_error(error)
            sys.exit(128 + error.signal)

    def load(self, program: FastAgent) -> None:
        """Load the cards; the agent that answers may act."""
        self.load_cards(program, receiver=self.agent)
        program.admission.require(self.agent)

    def _check_allowed(self) -> None:
        card_options.allowing(self.allow)
        if self.allow and self._is_on_temporal:
            raise ConfigError(
                "--allow has no effect on the workers of Temporal",
                hint="leave it out, or use `--engine embedded`",
            )

    def _check_target(self) -> None:
        directory = self.target.absolute().parent
        if not directory.is_dir():
            raise ConfigError(
                f"`{self.target}` cannot be written: there is no directory `{directory}`",
                hint="make it, or correct --output",
            )
        with suppress(OSError):  # one of them is not there
            if self.target.samefile(self.source):
                raise ConfigError(
                    f"`{self.target}` is the input, and the results would replace it",
                    hint="name another file with --output",
                )

    def _items(self, program: FastAgent) -> list[Item]:
        from fast_agent.engine.batch_input import Selection, read_items

        if not program.load_set.cards:
            return []  # what is wrong with the cards was said
        name = self._answering(program)
        config = program.load_set.cards[name].config
        chosen = Selection(self.offset, self.limit, self.sample, self.seed)
        return chosen.of(read_items(self.source, config, self.id_field))

    def _answering(self, program: FastAgent) -> str:
        program.admission.require(self.agent)
        name = self.agent or program.load_set.default
        if name is None or name not in program.load_set.cards:
            cards = program.load_set.cards
            known = f"there are {', '.join(f'`{one}`' for one in cards)}"
            raise ConfigError(
                f"no agent is named `{name}`" if name else "there is no agent to send items to",
                hint=did_you_mean(closest(name or "", cards), known),
            )
        return name

    @contextmanager
    def _store(self, program: FastAgent) -> Generator[RunStore]:
        """Open the runs of the batch, which is known by the file of its results."""
        from fast_agent.engine.embedded import open_store

        target = str(self.target.absolute())
        batch = sha256(target.encode(errors="surrogatepass")).hexdigest()[:10]
        with open_store(runs_directory(), batch) as store:
            facts = {
                "command": json.dumps(self._command()),
                "agent": self._answering(program),
                "model": self.model or "",
                "directory": str(program.workspace),
                "input": str(self.source.absolute()),
                "output": target,
            }
            known = store.facts()
            for name in ("agent", "model"):
                if known.get(name, facts[name]) != facts[name]:
                    raise ConfigError(
                        f"{self.target} is the output of a batch with the {name}"
                        f" `{known[name] or 'of its cards'}`",
                        hint=f"name another --output, or delete `{store.path}` to start again",
                    )
            store.set_facts({**facts, "began": known.get("began", str(time.time()))})
            store.only = self.only
            yield store

    def _command(self) -> dict[str, JsonValue]:
        """Return the options that `fast-agent runs resume` takes up; limits are of one life."""
        found: dict[str, JsonValue] = {}
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name not in _OF_ONE_LIFE:
                found[one.name] = str(value) if isinstance(value, Path) else value
        return found

    async def _run_batch(
        self,
        program: FastAgent,
        store: RunStore,
        items: list[Item],
        shape: OutputShape | None,
        out: Output,
    ) -> None:
        from anyio import sleep

        from fast_agent.cli.running.progress import BatchProgress
        from fast_agent.engine.batch import counts_of
        from fast_agent.engine.embedded import lock_of

        lock = lock_of(store)
        progress = BatchProgress(quiet=self.quiet)
        attached = False
        while not lock.take():
            if not attached:
                progress.note("another process is running this batch; this one shows its progress")
                attached = True
            progress.show(counts_of(store), None)
            await sleep(ATTACH_SECONDS)
        try:
            await self._run_queued(program, store, items, shape, progress, out)
        finally:
            lock.release()
            progress.close()

    async def _run_queued(
        self,
        program: FastAgent,
        store: RunStore,
        items: list[Item],
        shape: OutputShape | None,
        progress: BatchProgress,
        out: Output,
    ) -> None:
        """Queue the items, run those that are not answered, and write all rows."""
        from fast_agent.engine.batch_output import rows, write_rows
        from fast_agent.engine.model_requests import ModelRequests
        from fast_agent.engine.run_rows import NewRun
        from fast_agent.engine.run_steps import PausedError
        from fast_agent.steps.parts import StepRedactor

        agent = self._answering(program)
        store.queue(
            NewRun(number, item.key, agent, json.dumps(item.message))
            for number, item in enumerate(items)
        )
        if self.retry_failed:
            store.requeue(["failed"])
        redactor = StepRedactor(program.secrets(), str(program.workspace))
        is_free = partial(_is_free, program)
        if self._is_on_temporal:
            # There, what is sent and counted is a whole run of an agent, not a model's request.
            is_free = partial(_is_run_free, program, self.model)
        requests = ModelRequests(
            self._window,
            max_cost=self.limit_cost,
            max_tokens=self.limit_tokens,
            notify=progress.note,
            spent=store.spent_by_runs() if self._is_on_temporal else store.spent(),
            is_free=cache(is_free),
        )
        stopped: FastAgentError | None = None
        try:
            await self._answer_all(program, store, redactor, requests, shape, progress)
        except PausedError as error:
            stopped = error
        write_rows(self.target, rows(items, store, redactor, include_input=self.include_input))
        self._summarize(store, out)
        if stopped is not None:
            raise stopped

    async def _answer_all(
        self,
        program: FastAgent,
        store: RunStore,
        redactor: StepRedactor,
        requests: ModelRequests,
        shape: OutputShape | None,
        progress: BatchProgress,
    ) -> None:
        from anyio import create_task_group, sleep

        from fast_agent.engine.batch import Batch

        async def show(batch: Batch) -> None:
            while True:
                progress.show(batch.counts, requests)
                await sleep(ATTACH_SECONDS)

        engine = self._on_temporal if self._is_on_temporal else self._in_process
        async with engine(program, store, requests, shape, progress) as (ask, edition):
            batch = Batch(
                store,
                requests,
                redactor,
                ask,
                edition=edition,
                concurrency=self._window,
                max_errors=self._most_errors(sum(store.counts().values())),
            )
            stopped: FastAgentError | None = None
            async with create_task_group() as group:
                group.start_soon(show, batch)
                group.start_soon(_drain, requests, progress.note, group.cancel_scope)
                try:
                    await batch.run()
                except FastAgentError as error:
                    stopped = error  # raised within the group, it would come out wrapped
                finally:
                    progress.show(batch.counts, requests)
                    group.cancel_scope.cancel()
            stopped = stopped or requests.paused
            if stopped is not None:
                raise stopped

    @property
    def _is_on_temporal(self) -> bool:
        return self.engine == "temporal"

    @property
    def _window(self) -> int:
        """Maximum number of items at a time."""
        if self.concurrency is not None:
            return self.concurrency
        return TEMPORAL_CONCURRENCY if self._is_on_temporal else CONCURRENCY

    @asynccontextmanager
    async def _in_process(
        self,
        program: FastAgent,
        store: RunStore,
        requests: ModelRequests,
        shape: OutputShape | None,
        progress: BatchProgress,
    ) -> AsyncGenerator[tuple[Ask, str]]:
        """Answer runs in this process; yields what answers one, and the edition of new ones."""
        from fast_agent.cli.running.temporal import choices_of, tool_paths
        from fast_agent.engine.edition import store_edition

        del requests
        editions: dict[str, AgentApp] = {}

        async def ask(run: RunRow, steps: Steps) -> RunAnswer:
            return await _answer(editions.get(run.edition or "", app), run, steps, shape)

        async with AsyncExitStack() as stack:
            app = await stack.enter_async_context(self._live(program, store, progress))
            app.agent(self._answering(program))
            choices = choices_of(self, program, self.agent)
            tools = tool_paths(self, program)
            edition = store_edition(program, choices, app.runtime, store.store_part, tools=tools)
            for digest, count in store.open_editions().items():
                former = None if digest == edition else self._former(store, digest)
                if former is not None:
                    live = self._live(former, store, progress)
                    editions[digest] = await stack.enter_async_context(live)
                    runs = "1 run continues" if count == 1 else f"{count:,} runs continue"
                    progress.note(f"{runs} with the cards before the last edit")
            yield ask, edition

    def _live(
        self, program: FastAgent, store: RunStore, progress: BatchProgress
    ) -> AbstractAsyncContextManager[AgentApp]:
        from fast_agent.cards.agent_config import RequestParams
        from fast_agent.engine.run_steps import RuntimeFacts

        return program.run(
            model=self.model,
            # The batch tries again itself: so one rate limit slows down all of its runs.
            params=RequestParams(retries=0),
            shell=self.shell,
            files=self.files,
            fetch=self.fetch,
            trust_cards=self.trust,
            notify=progress.note,
            steps=RuntimeFacts(store),
            adjust=card_options.allowing(self.allow),
            partial_set=self.agent is not None,
        )

    def _former(self, store: RunStore, digest: str) -> FastAgent | None:
        """Load the cards that runs began with; None where they are not kept."""
        from fast_agent.app import FastAgent
        from fast_agent.cli.running.temporal import EDITIONS
        from fast_agent.config.home import home_directory
        from fast_agent.engine.edition import load_edition, unpack_edition

        data = store.parts.get(digest)
        if not isinstance(data, str):
            return None
        home = home_directory(os.environ) / EDITIONS
        files, manifest = unpack_edition(digest, b64decode(data), home)
        program = FastAgent(config_path=self.config_path, trust=self.trust_options())
        try:
            load_edition(program, files, manifest)
        except FastAgentError as error:
            raise ConfigError(
                f"the cards that runs of this batch began with cannot be loaded: {error.message}",
                hint="`fast-agent runs resume RUN --from 1` runs one with the current cards",
            ) from error
        return program

    @asynccontextmanager
    async def _on_temporal(
        self,
        program: FastAgent,
        store: RunStore,
        requests: ModelRequests,
        shape: OutputShape | None,
        progress: BatchProgress,
    ) -> AsyncGenerator[tuple[Ask, str]]:
        """Start workers; yields what waits for an answer, and the edition of new runs."""
        from fast_agent.agents.events import Origin, TurnFinished, TurnStarted
        from fast_agent.cli.running.temporal import choices_of, pin_cards, temporal_runs, tool_paths
        from fast_agent.engine.engine import RunAnswer
        from fast_agent.engine.execute import TurnEvents
        from fast_agent.messages.message import Message
        from fast_agent.models.step_model import usage_to_json
        from fast_agent.steps.steps import entered

        runs = await temporal_runs(program, self.temporal_address)
        choices = choices_of(self, program, self.agent)
        pinned = await pin_cards(runs, program, choices, tool_paths(self, program))
        # Batches of several machines may have files of the same name.
        salt = store.facts().get("cluster") or token_hex(4)
        store.set_facts({"cluster": salt})
        schema = None if shape is None else shape.schema.schema

        async def ask(run: RunRow, steps: Steps, tracing: Listener | None) -> RunAnswer:
            message = Message.user(json.loads(run.input))

            async def answered() -> RunResult:
                edition = replace(pinned, digest=run.edition or pinned.digest)
                handle = await runs.start(
                    f"{salt}-{run.id}",
                    edition,
                    run.agent,
                    message,
                    schema=schema,
                    memo={"batch": store.batch, "key": run.key},
                    asks=False,
                )
                return await runs.result(handle)

            turn = TurnEvents(Origin(run.agent, run.id, None), tracing)
            with entered(steps.top), turn as events:
                events.notify(TurnStarted, message)
                result = await requests.send(run.agent, answered)
                used = result.used
                events.notify(TurnFinished, result.stop_reason, result.message, used, used)
            requests.record(run.agent, usage_to_json(result.used))
            output = result.message.text if shape is None else result.structured
            return RunAnswer(output, usage_to_json(result.used), result.used.cost)

        async with program.traced(progress.note) as tracing:
            yield partial(ask, tracing=tracing), pinned.digest

    def _most_errors(self, total: int) -> int | None:
        text = self.max_errors
        if text is None:
            return None
        number = text.removesuffix("%")
        if not number.isdecimal():
            raise click.UsageError("--max-errors is a number, or a part such as 5%")
        return int(number) if number == text else total * int(number) // 100

    def _estimate(self, program: FastAgent, items: list[Item]) -> None:
        from fast_agent.cli.running.progress import estimate

        agent = self._answering(program)
        facts = estimate(program, agent, self.model, [item.message for item in items])
        self._print({"items": len(items), "agent": agent, **facts}, standard_output())

    def _summarize(self, store: RunStore, out: Output) -> None:
        from fast_agent.engine.batch import counts_of

        counts = counts_of(store)
        answered, again = store.totals()
        spent = store.spent()
        if self._is_on_temporal:  # whose steps are in its histories
            used = [json.loads(run.used) for run in store.runs() if run.used]
            answered, again = sum(one.get("requests", 0) for one in used), 0
            spent = store.spent_by_runs()
        facts: dict[str, JsonValue] = {
            "items": counts.total,
            "done": counts.done,
            "failed": counts.failed,
            "not_run": counts.total - counts.ended,
            "model_requests": answered,
            "asked_again": again,
            "tokens": spent.tokens,
            "cost": None if spent.unpriced else spent.nanodollars / 1e9,
            "output": str(self.target),
            "batch": store.batch,
        }
        if not self.quiet:
            self._print(facts, out)

    def _print(self, facts: dict[str, JsonValue], out: Output) -> None:
        if self.output == "json":
            out.write_facts(f"{json.dumps(facts, ensure_ascii=False)}\n")
            return
        for name, value in facts.items():
            if value is not None:
                shown = f"${value:.4f}" if name.startswith("cost") else value
                out.line(f"{name.replace('_', ' ')}: {shown}")


def resumed(
    command: Mapping[str, JsonValue], *, only: frozenset[str] | None, trust: bool, quiet: bool
) -> BatchCommand:
    """Return the command that a batch was begun with.

    Args:
        command: Its options, as its store keeps them.
        only: The ids of the runs to be run; None for all.
        trust: Whether everything found may act.
        quiet: Whether nothing but errors is printed.
    """
    settings: dict[str, Any] = dict.fromkeys(_OF_ONE_LIFE)
    for name, value in command.items():
        settings[name] = Path(str(value)) if name in _PATHS and value is not None else value
        if isinstance(value, list):
            settings[name] = tuple(value)
    settings.update(
        only=only, trust=trust, quiet=quiet, retry_failed=False, dry_run=False, output="human"
    )
    return BatchCommand(**settings)


def _is_free(program: FastAgent, model: str) -> bool:
    """Whether a model, and each that may take its place, costs nothing: it runs on this machine."""
    from fast_agent.models.spec import parse_models

    settings = program.settings
    specs = parse_models(model, settings.model_aliases, settings.endpoints)
    return not any(spec.is_cloud for spec in specs)


def _is_run_free(program: FastAgent, flag: str | None, _: str) -> bool:
    """Whether a run costs nothing: all cards ask models of this machine, as it may reach them."""
    from fast_agent.models.check import select_model

    select = partial(select_model, cwd=program.workspace, flag=flag)
    chosen = [
        select(card.config, program.settings, os.environ)
        for card in program.load_set.cards.values()
    ]
    return all(_is_free(program, one.text) for one in chosen)


async def _drain(
    requests: ModelRequests, notify: Callable[[str], None], scope: CancelScope
) -> None:
    """Finish the requests under way at the first signal, and stop everything at the second.

    Args:
        requests: Those of the batch.
        notify: Called with a line for the user.
        scope: Holds the batch.
    """
    import signal

    from anyio import current_time, open_signal_receiver

    from fast_agent.engine.run_steps import PausedError

    if threading.current_thread() is not threading.main_thread():
        return  # only the main thread may handle signals
    wanted = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    # One that is ignored, as under `nohup`, stays ignored.
    heard = [one for one in wanted if signal.getsignal(one) is not signal.SIG_IGN]
    with open_signal_receiver(*heard) as signals:
        async for number in signals:
            if requests.paused is not None:
                scope.cancel()
                return
            error = PausedError(
                f"the batch was stopped by {signal.Signals(number).name}",
                hint="run the same command again to resume",
                signal=number,
            )
            requests.stop(error)
            notify("finishing the requests in progress; a second signal stops immediately")
            scope.deadline = current_time() + DRAIN_SECONDS


async def _answer(app: AgentApp, run: RunRow, steps: Steps, shape: OutputShape | None) -> RunAnswer:
    """Answer a run in a fresh conversation."""
    from fast_agent.engine.engine import RunAnswer

    async with app.new_conversation(steps=steps) as conversation:
        agent = conversation.agent(run.agent)
        result = await agent.generate(json.loads(run.input), output=shape)
        steps.check()
        used = agent.tree_usage
        return RunAnswer(
            result.text if shape is None else cast("JsonValue", result.structured),
            {
                "input_tokens": used.input_tokens,
                "output_tokens": used.output_tokens,
                "requests": used.requests,
                "tool_calls": used.tool_calls,
            },
            used.cost,
        )
