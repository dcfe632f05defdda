"""`fast-agent runs`: the durable runs of this machine."""

from __future__ import annotations

import json
import os
import time
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from fast_agent.cli import options
from fast_agent.cli.output import hide_in_errors, standard_output
from fast_agent.errors import RunError
from fast_agent.steps.steps import TURN_SEPARATOR
from fast_agent.text.visible import visible
from fast_agent.text.wording import local_minute, plural, shortened_line

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine, Sequence
    from pathlib import Path

    from fast_agent.engine.embedded import EmbeddedRuns
    from fast_agent.engine.engine import RunEvent, RunFacts, Runs, RunState, StepFacts
    from fast_agent.text.json_value import JsonValue


T = TypeVar("T")

_RUN: Final = click.argument("run_id", metavar="RUN")

_ENGINE: Final = options.together(
    click.option(
        "--engine",
        type=click.Choice(["embedded", "temporal"]),
        default="embedded",
        show_default=True,
        help="Runs of this machine, or those of a Temporal server.",
    ),
    options.TEMPORAL_ADDRESS,
    options.CONFIG_PATH,
)

_FORMAT: Final = options.together(
    options.output_format("json", help_text="The output format."),
    click.option("--json", "as_json", is_flag=True, help="The same as `--format json`."),
)


@click.group(invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List, show, watch, cancel, resume and export the runs of batches.

    RUN is the id of a run, or a unique prefix of it. Runs are kept in the directory `runs` of
    the home directory of fast-agent, one file a batch; with --engine temporal, by the server.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_runs)


@command.command("list")
@click.argument("name", metavar="[RUN|BATCH]", default="")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(["queued", "running", "waiting", "done", "failed", "cancelled"]),
    help="Only runs in this state; may be repeated.",
)
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True,
              help="Most runs.")  # fmt: skip
@_FORMAT
@_ENGINE
def list_runs(
    name: str = "",
    states: tuple[RunState, ...] = (),
    limit: int = 100,
    output: str = "human",
    as_json: bool = False,
    **carrier: Any,
) -> None:
    """List runs, those of the batch that changed last first."""
    from fast_agent.engine.engine import RunFilter

    listed: list[RunFacts] = []
    problem: RunError | None = None

    async def find() -> None:
        wanted = RunFilter(name, frozenset(states), limit)
        async with _carried(**carrier) as runs:
            async for facts in runs.runs(wanted):
                listed.append(facts)  # noqa: PERF401 (an error must not lose those before it)

    try:
        _wait(find())
    except RunError as error:
        problem = error
    if listed or problem is None:
        if as_json or output == "json":
            standard_output().write_json([run_json(facts) for facts in listed])
        else:
            standard_output().write_facts(render_runs(listed))
    if problem is not None:
        raise problem


@command.command()
@_RUN
@click.option("--trace", is_flag=True, help="Draw when each step ran.")
@_FORMAT
@_ENGINE
def show(run_id: str, trace: bool, output: str, as_json: bool, **carrier: Any) -> None:
    """Show a run and its steps."""

    async def found() -> tuple[RunFacts, list[StepFacts]]:
        async with _carried(**carrier) as runs:
            facts = await runs.find(run_id)
            return facts, list(await runs.steps(facts.id))

    facts, steps = _wait(found())
    if as_json or output == "json":
        whole = {**run_json(facts), "steps": [step_json(step) for step in steps]}
        standard_output().write_json(whole)
        return
    render = render_trace if trace else render_run
    standard_output().write_facts(render(facts, steps))


@command.command()
@_RUN
@_FORMAT
@_ENGINE
def tail(run_id: str, output: str, as_json: bool, **carrier: Any) -> None:
    """Print the steps of a run as they happen, until it ends; as JSON, one object a line."""
    out = standard_output()
    as_json = as_json or output == "json"

    async def follow() -> None:
        async with _carried(**carrier) as runs:
            facts = await runs.find(run_id)
            async for event in runs.tail(facts.id):
                shown = json.dumps(event_json(event)) if as_json else render_event(event)
                out.write_facts(f"{shown}\n")

    _wait(follow())


@command.command()
@click.argument("run_ids", metavar="RUN…", nargs=-1, required=True)
@_ENGINE
def cancel(run_ids: tuple[str, ...], **carrier: Any) -> None:
    """Cancel runs; their answered steps are kept."""

    async def cancel_all() -> None:
        async with _carried(**carrier) as runs:
            for facts in [await runs.find(run_id) for run_id in run_ids]:
                if await runs.cancel(facts.id):
                    standard_output().line(f"{facts.id}: cancelled")
                else:
                    standard_output().line(f"{facts.id}: it has ended already, {facts.state}")

    _wait(cancel_all())


@command.command()
@click.argument("name", metavar="RUN|BATCH")
@click.option(
    "--from",
    "from_step",
    type=click.IntRange(min=1),
    metavar="STEP",
    help="Repeat this step and all that began after it; `runs show` numbers them.",
)
@click.option("--trust", is_flag=True, help="Let everything found act in this run.")
@options.quiet("Print nothing but errors.")
@_ENGINE
def resume(
    name: str, from_step: int | None, trust: bool, quiet: bool, engine: str, **carrier: Any
) -> None:
    """Go on with a run, or with all of a batch, where it stopped.

    A failed or cancelled run is started again: what was answered is not asked again. The run
    continues with the cards it began with; with --from, with those of now. With --engine temporal,
    NAME is a run, and workers continue it.
    """
    if engine == "temporal":
        if from_step is not None or trust:
            raise click.UsageError("--from and --trust apply only to runs of this machine")
        _wait(_resume_at_server(name, **carrier))
        return
    from fast_agent.cli.running.batch_run import resumed

    runs = _runs()
    is_batch = name in runs.batches()
    if is_batch and from_step is not None:
        raise click.UsageError("--from applies to a single run, and this is a batch")
    batch = name if is_batch else _wait(runs.find(name)).batch
    ids = None if is_batch else frozenset({_wait(runs.find(name)).id})
    with runs.opened(batch) as store:
        facts = store.facts()
        store.requeue(["failed", "cancelled", *(["done"] if from_step else [])], ids=ids)
        for run_id in ids or ():
            if from_step is not None:
                store.forget_edition(run_id)
                steps = store.steps(run_id)
                store.forget_steps(run_id, [step.key for step in steps[from_step - 1 :]])
    os.chdir(facts["directory"])  # the cards, the input and the output are named from there
    resumed(json.loads(facts["command"]), only=ids, trust=trust, quiet=quiet).run()


@command.command()
@_RUN
@click.option(
    "--output", "-o", "file", type=options.PATH, metavar="FILE", required=True,
    help="The recording to write.",
)  # fmt: skip
def export(run_id: str, file: Path) -> None:
    """Write a run as a recording, and print the command that replays it without models."""
    import shlex

    from fast_agent.recording.cassette import CassetteWriter
    from fast_agent.version import __version__

    runs = _runs()
    facts = _wait(runs.find(run_id))
    cassette = _wait(runs.export(facts.id))
    writer = CassetteWriter(file, {"program": f"fast-agent {__version__}", "run": facts.id})
    for digest, value in cassette.parts.items():
        writer.part(digest, value)
    for entry in cassette.entries.values():
        writer.entry(entry)
    writer.close(complete=cassette.complete)
    with runs.opened(facts.batch) as store:
        begun = json.loads(store.facts()["command"])
    words = ["fast-agent", "go"]
    for card in begun["cards"]:
        words += ["--card", card]
    if begun["config_path"] is not None:
        words += ["-c", begun["config_path"]]
    if begun["json_schema"] is not None:
        words += ["--json-schema", begun["json_schema"]]
    words += ["--agent", facts.agent, "--message", str(facts.message), "--replay", str(file)]
    standard_output().line(shlex.join(words))


@command.command()
@options.AGE
def prune(older_than: float) -> None:
    """Delete batches whose runs all ended, and in which nothing happened for so long."""
    deleted = _wait(_runs().prune(time.time() - older_than))
    standard_output().line(f"{plural(deleted, 'run')} deleted")


async def _resume_at_server(name: str, **carrier: Any) -> None:
    from fast_agent.engine.temporal.server_runs import ServerRuns

    async with _carried("temporal", **carrier) as runs:
        facts = await runs.find(name)
        if isinstance(runs, ServerRuns) and await runs.resume(facts.id):
            standard_output().line(f"{facts.id}: resumed")
        else:
            standard_output().line(f"{facts.id}: it neither failed nor was cancelled")


@asynccontextmanager
async def _carried(
    engine: str = "embedded",
    temporal_address: str | None = None,
    config_path: Path | None = None,
) -> AsyncGenerator[Runs]:
    """Return the runs of an engine."""
    if engine != "temporal":
        yield _runs()
        return
    from fast_agent.app import FastAgent
    from fast_agent.cli.running.temporal import temporal_runs

    program = FastAgent(config_path=config_path)
    hide_in_errors(program.redact)
    runs = await temporal_runs(program, temporal_address)
    from fast_agent.engine.temporal.server_runs import ServerRuns

    yield ServerRuns(runs)


def _runs() -> EmbeddedRuns:
    from fast_agent.cli.running.batch_run import runs_directory
    from fast_agent.engine.embedded import EmbeddedRuns

    return EmbeddedRuns(runs_directory())


def _wait(work: Coroutine[object, object, T]) -> T:
    from fast_agent.cli import process as event_loop

    async def run() -> T:
        return await work

    return event_loop.run(run)


_MAX_LINE_CHARACTERS: Final = 60
_BAR: Final = 40
_NAME: Final = 44
_UNSEEN: Final = frozenset({"order", "clock", "id", "fact", "time"})
"""Kinds that take no time, and are left out of the drawing."""


def render_runs(runs: Sequence[RunFacts]) -> str:
    """Write runs as lines for people."""
    if not runs:
        return "there are no runs; `fast-agent batch` starts some\n"
    width = max(len(run.id) for run in runs)
    return "".join(
        f"{run.id:<{width}}  {run.state:<9}  {_when(run.began)}  {_length(run):>8}  "
        f"{visible(run.agent)}: {_short(run.message)}\n"
        for run in runs
    )


def run_json(run: RunFacts) -> dict[str, JsonValue]:
    """Write a run as JSON."""
    return {**asdict(run), "began": _iso(run.began), "ended": _iso(run.ended)}


def step_json(step: StepFacts) -> dict[str, JsonValue]:
    """Write a step as JSON."""
    return {
        "agent": step.key.agent,
        **step.key._asdict(),
        "state": step.state,
        "began": _iso(step.began),
        "seconds": round(step.at - step.began, 6),
        "tries": step.tries,
        "used": step.used,
        "asked": step.asked,
        "gave": step.gave,
    }


def event_json(event: RunEvent) -> dict[str, JsonValue]:
    """Write what happened as JSON."""
    if event.step is None:
        return {"at": _iso(event.at), "run": event.state}
    return {"at": _iso(event.at), "step": step_json(event.step)}


def render_event(event: RunEvent) -> str:
    """Write what happened as a line for people."""
    step = event.step
    if step is None:
        return f"{_clock(event.at)}  the run is {event.state}"
    return f"{_clock(event.at)}  {step.state:<9}  {step.key.agent}: {_name(step)}"


def render_run(run: RunFacts, steps: Sequence[StepFacts]) -> str:
    """Write a run and its steps as lines for people."""
    lines = [*_head(run), ""]
    for number, step in enumerate(steps, 1):
        took = f"{(step.at - step.began) * 1000:>9,.0f} ms" if _takes_time(step) else " " * 12
        lines.append(
            f"{number:>4}  {step.state:<9} {took}  {visible(step.key.agent)}: {_name(step)}"
            + (f"  (asked {step.tries} times)" if step.tries > 1 else "")
        )
    return "\n".join(lines) + "\n"


def render_trace(run: RunFacts, steps: Sequence[StepFacts]) -> str:
    """Draw when each step of a run was asked and answered.

    Times between the lives of a run are as long as they were.
    """
    lines = [*_head(run), ""]
    drawn = [step for step in steps if _takes_time(step)]
    if not drawn:
        return "\n".join([*lines, "no step took any time"]) + "\n"
    start = min(step.began for step in drawn)
    whole = max(max(step.at for step in drawn) - start, 1e-6)
    for step in drawn:
        first = int((step.began - start) / whole * _BAR)
        last = max(first + 1, round((step.at - start) / whole * _BAR))
        mark = {"done": "█", "begun": "░", "failed": "▒", "cancelled": "▒"}[step.state]
        bar = f"{' ' * first}{mark * (last - first)}".ljust(_BAR)
        depth = step.key.turn.count(TURN_SEPARATOR)
        label = f"{'  ' * depth}{visible(step.key.agent)}: {_name(step)}"
        label = label if len(label) <= _NAME else f"{label[: _NAME - 1]}…"
        text = f"{(step.at - step.began) * 1000:,.0f} ms{_tokens(step)}"
        if step.state != "done":
            text = f"{text} · {step.state}"
        if step.tries > 1:
            text = f"{text} · asked {step.tries} times"
        lines.append(f"{label:<{_NAME}} │{bar}│ {text}")
    lines.append(f"{'':<{_NAME}} └{'─' * _BAR}┘ {whole * 1000:,.0f} ms")
    return "\n".join(lines) + "\n"


def _head(run: RunFacts) -> list[str]:
    lines = [
        f"run {run.id}: {run.state}, agent {visible(run.agent)}, started {_when(run.began)}"
        + (f", {run.attempt} times" if run.attempt > 1 else ""),
        f"message: {_short(run.message)}",
    ]
    if run.output is not None:
        lines.append(f"answer: {_short(run.output)}")
    if isinstance(run.error, dict):
        lines.append(f"error: {_short(run.error.get('message'))}")
    if isinstance(run.used, dict):
        text = [f"{name.replace('_', ' ')} {value:,}" for name, value in run.used.items()
                if isinstance(value, int)]  # fmt: skip
        if run.cost is not None:
            text.append(f"${run.cost:.4f}")
        lines.append(f"used: {', '.join(text)}")
    return lines


def _takes_time(step: StepFacts) -> bool:
    return step.key.kind not in _UNSEEN


def _name(step: StepFacts) -> str:
    """Return what was asked, in words."""
    kind, asked = step.key.kind, step.asked
    if kind == "model" and isinstance(asked, dict):
        return visible(f"model {asked.get('model', '')}")
    if kind == "tool" and isinstance(asked, dict):
        return visible(f"tool {asked.get('tool', step.key.name)}")
    return visible(f"{kind} {step.key.name}".rstrip())


def _tokens(step: StepFacts) -> str:
    if not isinstance(step.used, dict):
        return ""
    counts = [step.used.get(name) for name in ("input_tokens", "output_tokens")]
    total = sum(count for count in counts if isinstance(count, int))
    return f" · {total:,} tokens" if total else ""


def _short(value: JsonValue) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return shortened_line(visible(" ".join(text.split())), _MAX_LINE_CHARACTERS)


def _length(run: RunFacts) -> str:
    if run.began is None or run.ended is None:
        return ""
    return f"{run.ended - run.began:,.1f} s"


def _when(seconds: float | None) -> str:
    return "not started     " if seconds is None else local_minute(seconds)


def _clock(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().strftime("%H:%M:%S.%f")[:12]


def _iso(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds).astimezone().isoformat(timespec="milliseconds")
