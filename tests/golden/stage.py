"""Stages: scripted exchanges with one command, read from YAML."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

Step: TypeAlias = "Mapping[str, Any]"
Answers: TypeAlias = "dict[str, list[list[Any]]]"
"""By exchange, what came in each step, in order."""

HERE = Path(__file__).parent
EXCHANGES = HERE / "exchanges"
OPENING = "opening"
"""The exchange in which the steps that open every other one are recorded."""

VERBS = frozenset(
    (
        *("answer", "ask", "await", "begin", "exit", "get", "hangup", "hello", "http"),
        *("leave", "raw", "read", "refuse", "remove", "run", "signal", "tell", "write"),
    )
)
_KEYS = frozenset(
    {"command", "edge", "process", "era", "can", "files", "fill", OPENING, "exchanges"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One command of the program, and exchanges with it.

    Args:
        name: The name of its file.
        command: The arguments of `fast-agent`.
        edge: Whether messages are lines or travel over HTTP, or commands are run one by one.
        each: Whether every exchange has a process and a directory of its own.
        modern: Whether requests carry the envelope of 2026-07-28.
        can: The capabilities the client declares.
        files: Whether the world has the files that the recorded commit wrote.
        fill: By directory of the world, how many documents are made in it.
        opening: Steps before each exchange; over lines with one process, before the first.
        exchanges: By name, the steps.
    """

    name: str
    command: tuple[str, ...]
    edge: Literal["lines", "http", "commands"]
    each: bool
    modern: bool
    can: Mapping[str, Any]
    files: bool
    fill: Mapping[str, int]
    opening: tuple[Step, ...]
    exchanges: Mapping[str, tuple[Step, ...]]


def stage_names() -> list[str]:
    """Return the names of all stages."""
    return sorted(path.stem for path in EXCHANGES.glob("*.yaml"))


def read_stage(name: str) -> Stage:
    """Read a stage.

    Raises:
        ValueError: The file has unknown keys, or a step without a known verb.
    """
    data: dict[str, Any] = yaml.safe_load((EXCHANGES / f"{name}.yaml").read_text("utf-8"))
    if unknown := data.keys() - _KEYS:
        raise ValueError(f"{name}: unknown keys {sorted(unknown)}")
    found = cast("dict[str, list[Step]]", data["exchanges"])
    exchanges = {title: tuple(steps) for title, steps in found.items()}
    opening = tuple(cast("list[Step]", data.get(OPENING, [])))
    for title, steps in {OPENING: opening, **exchanges}.items():
        for number, step in enumerate(steps, 1):
            if verb_of(step) not in VERBS:
                raise ValueError(f"{name}: {title}: step {number} has no verb: {dict(step)}")
    return Stage(
        name=name,
        command=tuple(cast("str", data.get("command", "")).split()),
        edge=data["edge"],
        each=data.get("process") == "each",
        modern=data.get("era") == "modern",
        can=data.get("can", {}),
        files=data.get("files", False),
        fill=data.get("fill", {}),
        opening=opening,
        exchanges=exchanges,
    )


def verb_of(step: Step) -> str:
    """Return what a step does: its first key."""
    return next(iter(step))
