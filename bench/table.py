"""The table: figures as Markdown for people and as JSON for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bench.figure import Figure, Goal
    from bench.samples import Samples

HEAD = ("figure", "ours (min-max)", "goal", "met", "limit", "x limit", "peer (min-max)", "vs peer")


def render_table(figures: Sequence[Figure], *, peers: bool) -> str:
    """Write figures as an aligned Markdown table.

    Args:
        figures: The lines.
        peers: Whether to have the columns of the peer.

    Returns:
        The table, ending with a line break.
    """
    width = len(HEAD) if peers else len(HEAD) - 2
    rows = [HEAD[:width], *(_row(figure)[:width] for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(width)]
    lines = [_line(row, widths) for row in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines) + "\n"


def to_json(figures: Sequence[Figure], facts: Mapping[str, str]) -> dict[str, Any]:
    """Return figures and the facts of the run as a JSON object."""
    return {"facts": dict(facts), "figures": [_figure_json(figure) for figure in figures]}


def number(value: float) -> str:
    """Write a value with three digits that matter, or all before the point."""
    if value == int(value) and abs(value) < 1000:
        return str(int(value))
    for bound, digits in ((10, 2), (100, 1)):
        if abs(value) < bound:
            return f"{value:.{digits}f}"
    return f"{value:,.0f}"


def _row(figure: Figure) -> tuple[str, ...]:
    peer = _span(figure.peer, figure.unit) if figure.peer is not None else ""
    return (
        figure.name,
        _span(figure.ours, figure.unit),
        _goal(figure.goal, figure.unit),
        {True: "yes", False: "NO", None: ""}[figure.met],
        "" if figure.limit is None else _with_unit(figure.limit.median, figure.unit),
        "" if figure.limit_ratio is None else number(figure.limit_ratio),
        " ".join(part for part in (peer, figure.peer_note) if part),
        _against(figure.peer_ratio),
    )


def _span(samples: Samples, unit: str) -> str:
    middle = _with_unit(samples.median, unit)
    if len(samples.values) == 1:
        return middle
    return f"{middle} ({number(samples.low)}-{number(samples.high)})"


def _goal(goal: Goal | None, unit: str) -> str:
    if goal is None:
        return ""
    return f"{'>=' if goal.at_least else '<='} {_with_unit(goal.bound, unit)}"


def _against(ratio: float | None) -> str:
    if ratio is None:
        return ""
    return f"{number(ratio)}x better" if ratio >= 1 else f"{number(1 / ratio)}x worse"


def _with_unit(value: float, unit: str) -> str:
    space = " " if unit[:1].isalpha() and unit != "x" else ""
    return f"{number(value)}{space}{unit}"


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
    return "| " + " | ".join(cells) + " |"


def _figure_json(figure: Figure) -> dict[str, Any]:
    goal = figure.goal
    return {
        "name": figure.name,
        "unit": figure.unit,
        "ours": _samples_json(figure.ours),
        "goal": None if goal is None else {"bound": goal.bound, "at_least": goal.at_least},
        "met": figure.met,
        "limit": _samples_json(figure.limit),
        "limit_ratio": figure.limit_ratio,
        "peer": _samples_json(figure.peer),
        "peer_ratio": figure.peer_ratio,
        "peer_note": figure.peer_note,
    }


def _samples_json(samples: Samples | None) -> dict[str, Any] | None:
    if samples is None:
        return None
    return {"median": samples.median, "min": samples.low, "max": samples.high}
