"""What `fast-agent runs` prints."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Final

from fast_agent.steps.steps import TURN_SEPARATOR
from fast_agent.text.visible import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.engine.engine import RunEvent, RunFacts, StepFacts
    from fast_agent.text.json_value import JsonValue

_LONGEST: Final = 60
_BAR: Final = 40
_NAME: Final = 44
_UNSEEN: Final = frozenset({"order", "clock", "id", "fact", "time"})
"""Kinds that take no time, and are left out of the drawing."""


def render_runs(runs: Sequence[RunFacts]) -> str:
    """Write runs as lines for people."""
    if not runs:
        return "there are no runs; `fast-agent batch` begins some\n"
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
        told = f"{(step.at - step.began) * 1000:,.0f} ms{_tokens(step)}"
        if step.state != "done":
            told = f"{told} · {step.state}"
        if step.tries > 1:
            told = f"{told} · asked {step.tries} times"
        lines.append(f"{label:<{_NAME}} │{bar}│ {told}")
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
        told = [f"{name.replace('_', ' ')} {value:,}" for name, value in run.used.items()
                if isinstance(value, int)]  # fmt: skip
        if run.cost is not None:
            told.append(f"${run.cost:.4f}")
        lines.append(f"used: {', '.join(told)}")
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
    line = visible(" ".join(text.split()))
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1].rstrip()}…"


def _length(run: RunFacts) -> str:
    if run.began is None or run.ended is None:
        return ""
    return f"{run.ended - run.began:,.1f} s"


def _when(seconds: float | None) -> str:
    if seconds is None:
        return "not started     "
    return datetime.fromtimestamp(seconds).astimezone().isoformat(" ", "minutes")[:16]


def _clock(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().strftime("%H:%M:%S.%f")[:12]


def _iso(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds).astimezone().isoformat(timespec="milliseconds")
