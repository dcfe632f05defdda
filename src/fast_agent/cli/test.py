"""`fast-agent test`."""

from __future__ import annotations

import json
import sys
from itertools import groupby
from typing import TYPE_CHECKING

import click

from fast_agent.cli import options
from fast_agent.text.visible import visible

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fast_agent.cli.card_test.case_run import CaseResult


@click.command()
@click.argument("paths", nargs=-1)
@click.option("-k", "only", metavar="TEXT", help="Run the cases whose file or name contains TEXT.")
@click.option("--record", is_flag=True, help="Record missing recordings with the cards' models.")
@click.option("--record-all", is_flag=True, help="Record every case again.")
@options.CONFIG_PATH
@options.output_format("json")
def command(
    paths: tuple[str, ...],
    only: str | None,
    record: bool,
    record_all: bool,
    config_path: Path | None,
    output: str,
) -> None:
    """Test cards against recordings, without models, tools, servers or a network.

    PATHS are `*.test.yaml` files and directories. The default is this directory and all below it.
    Each case sends messages and describes the expected answer.

    Exit status: 0 all passed, 1 a case failed or a file is invalid, 2 invalid usage or nothing to
    run, 3 no case ran because the project is not approved.
    """
    from fast_agent.cli.card_test.testing import find_case_files, run_case_files

    files = find_case_files(paths or (".",))
    if not any(_selected(one.shown, case.name, only) for one in files for case in one.cases):
        where = ", ".join(paths) or "this directory"
        what = "there are no `*.test.yaml` files" if not files else f"no case matches `{only}`"
        raise click.UsageError(f"{what} in {where}")

    import anyio

    from fast_agent.cli.log import show_log

    show_log(quiet=True)
    recording = "all" if record_all else "missing" if record else "never"

    async def run() -> list[CaseResult]:
        return await run_case_files(
            files, only=only, recording=recording, config_path=config_path, found=not paths
        )

    from fast_agent.cli.output import prints_apart, standard_output
    from fast_agent.errors import TrustError

    # What cards print goes where it does not mix with the report.
    with prints_apart():
        results = anyio.run(run)
    standard_output().write_facts((render_json if output == "json" else render_text)(results))
    if all(one.refused for one in results):
        sys.exit(TrustError.status)
    if not all(one.passed for one in results):
        sys.exit(1)


def _selected(file: str, case: str, only: str | None) -> bool:
    return only is None or only.lower() in f"{file}: {case}".lower()


def render_text(results: Sequence[CaseResult]) -> str:
    """Write one line a case, with what was not as expected below it, and the counts."""
    lines: list[str] = []
    for file, cases in groupby(results, lambda one: one.file):
        lines.append(visible(file))
        for case in cases:
            mark = "ok    " if case.passed else "FAILED"
            note = " (recorded)" if case.recorded else ""
            lines.append(f"  {mark} {visible(case.name)}{note}")
            for problem in case.problems:
                lines += [f"         {visible(line)}" for line in problem.split("\n")]
    failed = sum(not one.passed for one in results)
    lines.append(f"{len(results) - failed} passed, {failed} failed")
    return "\n".join(lines) + "\n"


def render_json(results: Sequence[CaseResult]) -> str:
    """Write the same as one JSON object."""
    failed = sum(not one.passed for one in results)
    facts = {
        "passed": len(results) - failed,
        "failed": failed,
        "cases": [
            {
                "file": one.file,
                "name": one.name,
                "passed": one.passed,
                "recorded": one.recorded,
                "problems": list(one.problems),
            }
            for one in results
        ],
    }
    return json.dumps(facts, indent=2, ensure_ascii=False) + "\n"
