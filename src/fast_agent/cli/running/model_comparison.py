"""`fast-agent go --models a,b`: one message to several models, and a table of what each took."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fast_agent.cli.running.structured import answer_facts
from fast_agent.errors import FastAgentError
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from fast_agent.agents.turn_context import TurnResult
    from fast_agent.cli.running.progress import Progress
    from fast_agent.models.model import Usage
    from fast_agent.text.json_value import JsonValue

    Ask = Callable[[str], Awaitable[tuple[str, TurnResult, Usage]]]


@frozen
class ModelRun:
    """What one model did.

    Args:
        model: Its spec.
        facts: The facts of its answer; None where it failed.
        error: Why it failed, or None.
        seconds: Time from the start of its program to its answer.
    """

    model: str
    facts: dict[str, JsonValue] | None
    error: str | None
    seconds: float


async def compare_models(
    models: Sequence[str], ask: Ask, progress: Progress, *, as_json: bool
) -> bool:
    """Ask one model after another, and print their answers as they come and a table at the end.

    Args:
        models: Their specs.
        ask: Asks a model in a separate program: the agent's name, its result, what was used.
        progress: Prints.
        as_json: Print one JSON object with all runs instead.

    Returns:
        Whether all of them answered.
    """
    runs: list[ModelRun] = []
    for model in models:
        run = await _run(model, ask)
        runs.append(run)
        if not as_json:
            text = f"error: {run.error}" if run.facts is None else str(run.facts["text"])
            progress.print_answer(f"## {model}\n\n{text.strip()}\n")
    if as_json:
        progress.print_facts({"models": [_to_json(run) for run in runs]})
    else:
        progress.print_answer("\n".join(_table(runs)))
    return all(run.error is None for run in runs)


async def _run(model: str, ask: Ask) -> ModelRun:
    start = time.monotonic()
    try:
        agent, result, usage = await ask(model)
    except FastAgentError as error:
        return ModelRun(model, None, error.message, time.monotonic() - start)
    return ModelRun(model, answer_facts(agent, result, usage), None, time.monotonic() - start)


def _to_json(run: ModelRun) -> dict[str, JsonValue]:
    seconds = round(run.seconds, 3)
    facts: dict[str, JsonValue] = {"error": run.error} if run.facts is None else run.facts
    return {"model": run.model, "seconds": seconds, **facts}


def _table(runs: Sequence[ModelRun]) -> Iterator[str]:
    rows = [["model", "seconds", "requests", "input", "output", "cost"]]
    rows += [[run.model, f"{run.seconds:.1f}", *_usage(run)] for run in runs]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        yield "  ".join(cells).rstrip()


def _usage(run: ModelRun) -> list[str]:
    used = None if run.facts is None else run.facts["usage"]
    if not isinstance(used, Mapping):
        return ["failed", "", "", ""]
    cost = used["cost"]
    shown = f"${cost:.4f}" if isinstance(cost, float | int) else "unknown"
    return [str(used["requests"]), str(used["input_tokens"]), str(used["output_tokens"]), shown]
