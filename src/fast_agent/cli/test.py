"""`fast-agent test`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from fast_agent.cli import options

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.cli.card_test.case_run import CaseResult


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
    from fast_agent.cli.card_test.report import render_html, render_json, render_text
    from fast_agent.cli.card_test.testing import find_case_files, run_case_files

    files = find_case_files(paths or (".",))
    if not any(
        case.data or _selected(one.shown, case.name, only) for one in files for case in one.cases
    ):
        where = ", ".join(paths) or "this directory"
        what = "there are no `*.test.yaml` files" if not files else f"no case matches `{only}`"
        raise click.UsageError(f"{what} in {where}")

    import anyio

    from fast_agent.cli.log import show_log

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
    from fast_agent.errors import TrustError

    # What cards print goes where it does not mix with the report.
    with prints_apart():
        results = anyio.run(run)
    standard_output().write_facts((render_json if output == "json" else render_text)(results))
    if html is not None:
        _write(html, render_html(results))
    if all(one.refused for one in results):
        sys.exit(TrustError.status)
    if not all(one.passed for one in results):
        sys.exit(1)


def _selected(file: str, case: str, only: str | None) -> bool:
    return only is None or only.lower() in f"{file}: {case}".lower()


def _write(path: Path, page: str) -> None:
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"`{path}` cannot be written: {error.strerror}") from error
