"""`fast-agent test`, and its report."""

from __future__ import annotations

import json
import sys
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, Final

import click

from fast_agent.cli import options
from fast_agent.errors import TrustError, os_reason
from fast_agent.text.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from fast_agent.cli.card_test.case_run import CaseResult
    from fast_agent.text.json_value import JsonObject


@click.command()
@click.argument("paths", nargs=-1)
@click.option("-k", "only", metavar="TEXT", help="Run the cases whose file or name contains TEXT.")
@click.option("--record", is_flag=True, help="Record missing recordings with the cards' models.")
@click.option("--record-all", is_flag=True, help="Record every case again.")
@click.option(
    "--model", "models", metavar="MODEL[,MODEL…]", help="Run every case with these models, live."
)
@click.option(
    "--soft",
    is_flag=True,
    help="Answer requests that differ from the recorded ones by their place, and show how.",
)
@click.option("--html", type=options.PATH, metavar="FILE", help="Write a page with plots, too.")
@options.CONFIG_PATH
@options.output_format("json")
def command(
    paths: tuple[str, ...],
    only: str | None,
    record: bool,
    record_all: bool,
    models: str | None,
    soft: bool,
    html: Path | None,
    config_path: Path | None,
    output: str,
) -> None:
    """Test cards against recordings, without models, tools, servers or a network.

    Cases with `live: true`, and all cases with `--model`, ask models.

    PATHS are `*.test.yaml` files and directories. The default is this directory and all below it.
    Each case sends messages and describes the expected answer.

    Exit status: 0 all passed, 1 a case failed or a file is invalid, 2 invalid usage or nothing to
    run, 3 no case ran because the project is not approved.
    """
    from fast_agent.cli.card_test.testing import find_case_files, run_case_files

    files = find_case_files(paths or (".",))
    if not any(
        case.data or _is_selected(one.shown, case.name, only) for one in files for case in one.cases
    ):
        where = ", ".join(paths) or "this directory"
        what = "there are no `*.test.yaml` files" if not files else f"no case matches `{only}`"
        raise click.UsageError(f"{what} in {where}")

    from fast_agent.cli import process as event_loop
    from fast_agent.cli.process import show_log

    show_log(quiet=True)
    compared = [one.strip() for one in (models or "").split(",") if one.strip()]
    if compared and (record or record_all):
        raise click.UsageError("--model asks models live, and records nothing")
    recording = "all" if record_all else "missing" if record else "never"

    async def run() -> list[CaseResult]:
        return await run_case_files(
            files, only=only, recording=recording, config_path=config_path, found=not paths,
            models=compared, soft=soft,
        )  # fmt: skip

    from fast_agent.cli.output import prints_apart, standard_output

    # What cards print goes where it does not mix with the report.
    with prints_apart():
        results = event_loop.run(run)
    standard_output().write_facts((render_json if output == "json" else render_text)(results))
    if html is not None:
        _write(html, render_html(results))
    if all(one.refused for one in results):
        sys.exit(TrustError.status)
    if not all(one.passed for one in results):
        sys.exit(1)


def _is_selected(file: str, case: str, only: str | None) -> bool:
    return only is None or only.lower() in f"{file}: {case}".lower()


def _write(path: Path, page: str) -> None:
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"`{path}` cannot be written: {os_reason(error)}") from error


_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em;
  color: #1c1e21; background: #fff }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; padding: .35em .7em;
  border-bottom: 1px solid #ddd; vertical-align: top } td.n { text-align: right }
.ok { color: #14692f } .bad { color: #a3161b } pre { white-space: pre-wrap; margin: .3em 0 }
svg text { font: 12px system-ui, sans-serif; fill: currentColor }
@media (prefers-color-scheme: dark) { body { color: #e4e6eb; background: #18191a }
  th, td { border-color: #3a3b3c } .ok { color: #6fce8a } .bad { color: #ff8a8a } }
"""
_BAR: Final = 420
_ROW: Final = 24


def render_text(results: Sequence[CaseResult]) -> str:
    """Return one line a case, with what was not as expected below it, and the counts."""
    lines: list[str] = []
    for file, cases in groupby(results, lambda one: one.file):
        lines.append(visible(file))
        for case in cases:
            mark = "ok    " if case.passed else "FAILED"
            note = " (recorded)" if case.recorded else ""
            model = "" if case.model is None else f" [{case.model}]"
            measured = _measured(case)
            line = f"  {mark} {case.name}{model}{note}" + (f"   {measured}" if measured else "")
            lines.append(visible(line))
            if case.drifted:
                count = len(case.drifted)
                what = (
                    "request is not the recorded one"
                    if count == 1
                    else "requests are not the recorded ones"
                )
                lines.append(f"         drifted: {count} {what}")
            for drift in case.drifted:
                lines += [f"         {visible(line)}" for line in drift.split("\n")]
            for problem in case.problems:
                lines += [f"         {visible(line)}" for line in problem.split("\n")]
    models = list(dict.fromkeys(one.model for one in results if one.model is not None))
    if len(models) > 1:
        lines += ["", *_table(results, models), ""]
    failed = sum(not one.passed for one in results)
    lines.append(f"{len(results) - failed} passed, {failed} failed")
    return "\n".join(lines) + "\n"


def _measured(case: CaseResult) -> str:
    """Return what was measured of a case whose models were asked."""
    parts: list[str] = []
    if case.runs > 1:
        parts.append(f"{case.passes}/{case.runs} runs")
    if case.score is not None:
        parts.append(f"score {case.score:.2f}")
    if case.cost:
        parts.append(f"${case.cost:.4f}")
    return ", ".join(parts)


def _table(results: Sequence[CaseResult], models: Sequence[str]) -> Iterator[str]:
    """Yield a table of cases by models, with the sums of each model below."""
    by = {(one.file, one.name, one.model): one for one in results}
    rows = [["", *models]]
    for file, name in dict.fromkeys((one.file, one.name) for one in results):
        found = [by.get((file, name, model)) for model in models]
        rows.append([name, *("-" if one is None else _cell(one) for one in found)])
    sums = [_sums([one for one in results if one.model == model]) for model in models]
    rows.append(["all", *sums])
    widths = [max(len(visible(row[at])) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(visible(cell).ljust(widths[at]) for at, cell in enumerate(row)).rstrip()


def _cell(case: CaseResult) -> str:
    measured = _measured(case)
    return ("ok" if case.passed else "FAILED") + (f" ({measured})" if measured else "")


def _sums(cases: Sequence[CaseResult]) -> str:
    passed = sum(one.passed for one in cases)
    costs = [one.cost for one in cases]
    cost = "" if None in costs else f", ${sum(one or 0.0 for one in costs):.4f}"
    return f"{passed} of {len(cases)}{cost}, {sum(one.seconds for one in cases):.1f} s"


def render_json(results: Sequence[CaseResult]) -> str:
    """Return the same as one JSON object."""
    failed = sum(not one.passed for one in results)
    facts = {
        "passed": len(results) - failed,
        "failed": failed,
        "cases": [_facts(one) for one in results],
    }
    return json.dumps(facts, indent=2, ensure_ascii=False) + "\n"


def _facts(one: CaseResult) -> JsonObject:
    return {
        "file": one.file,
        "name": one.name,
        "passed": one.passed,
        "recorded": one.recorded,
        "problems": list(one.problems),
        "drifted": list(one.drifted),
        "model": one.model,
        "runs": one.runs,
        "passes": one.passes,
        "score": one.score,
        "cost": one.cost,
        "tokens": one.tokens,
        "seconds": round(one.seconds, 3),
    }


def render_html(results: Sequence[CaseResult]) -> str:
    """Return a page with plots and a table that needs nothing but itself."""
    models = list(dict.fromkeys(one.model for one in results))
    passed = sum(one.passed for one in results)
    plots = [
        _plot(
            "Cases that passed", "", [(_name(m), _rate(_results_of(results, m))) for m in models]
        ),
    ]
    scores = [(_name(model), _mean_score(_results_of(results, model))) for model in models]
    if any(score is not None for _, score in scores):
        plots.append(_plot("Mean score", "", [(n, s or 0.0) for n, s in scores]))
    plots.append(
        _plot(
            "Seconds",
            " s",
            [(_name(m), sum(o.seconds for o in _results_of(results, m))) for m in models],
        )
    )
    rows = "\n".join(map(_row, results))
    return (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{passed} of {len(results)} cases passed</title>\n<style>{_STYLE}</style>\n"
        f"<h1>{passed} of {len(results)} cases passed</h1>\n{''.join(plots)}"
        "<table>\n<tr><th>Case<th>Model<th>Result<th>Runs<th>Score<th>Cost<th>Tokens<th>Seconds"
        f"</tr>\n{rows}\n</table>\n</html>\n"
    )


def _row(one: CaseResult) -> str:
    problems = "".join(f"<pre>{escape(visible_lines(text))}</pre>" for text in one.problems)
    mark = '<b class="ok">ok</b>' if one.passed else '<b class="bad">failed</b>'
    numbers = (
        f"{one.passes}/{one.runs}",
        "" if one.score is None else f"{one.score:.2f}",
        "" if one.cost is None else f"${one.cost:.4f}",
        str(one.tokens),
        f"{one.seconds:.2f}",
    )
    name = escape(visible(f"{one.file}: {one.name}"))
    cells = "".join(f'<td class="n">{cell}</td>' for cell in numbers)
    model = escape(visible(_name(one.model)))
    return f"<tr><td>{name}{problems}</td><td>{model}</td><td>{mark}</td>{cells}</tr>"


def visible_lines(text: str) -> str:
    """Return text whose control characters are shown, with its line breaks."""
    return "\n".join(visible(line) for line in text.split("\n"))


def _plot(title: str, unit: str, values: Sequence[tuple[str, float]]) -> str:
    """Return bars, one for each value; those from 0 to 1 are drawn to that scale."""
    most = max(1.0, *(value for _, value in values))
    bars = "".join(
        f'<text x="0" y="{at * _ROW + 16}">{escape(visible(name))}</text>'
        f'<rect x="180" y="{at * _ROW + 4}" width="{_BAR * value / most:.1f}" height="16" '
        'fill="#3b7dd8"/>'
        f'<text x="{186 + _BAR * value / most:.1f}" y="{at * _ROW + 16}">{value:.2f}{unit}</text>'
        for at, (name, value) in enumerate(values)
    )
    size = f'width="720" height="{len(values) * _ROW}"'
    return f'<h2>{title}</h2>\n<svg {size} role="img" aria-label="{title}">{bars}</svg>\n'


def _results_of(results: Sequence[CaseResult], model: str | None) -> list[CaseResult]:
    return [one for one in results if one.model == model]


def _name(model: str | None) -> str:
    return model or "models of the cards"


def _rate(cases: Sequence[CaseResult]) -> float:
    return sum(one.passed for one in cases) / len(cases)


def _mean_score(cases: Sequence[CaseResult]) -> float | None:
    scores = [one.score for one in cases if one.score is not None]
    return sum(scores) / len(scores) if scores else None
