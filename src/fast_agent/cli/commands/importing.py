"""`fast-agent import`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, cast

import click

from fast_agent.cli import options
from fast_agent.cli.card_options import AGENT_CARDS

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.formats.detection import Format
    from fast_agent.formats.draft import ToolChoice
    from fast_agent.formats.importing import Import

_CHOICES = ("none", "files", "all")
_FORMATS = (
    "claude", "copilot", "opencode", "gemini", "codex", "docker-agent", "crewai", "peer", "mcp",
)  # fmt: skip


@click.command()
@click.argument("paths", nargs=-1, required=True, type=options.PATH, metavar="PATH|DIR...")
@click.option(
    "--output",
    type=options.PATH,
    default=AGENT_CARDS,
    show_default=True,
    metavar="DIR",
    help="The directory to write the cards to.",
)
@click.option(
    "--tools",
    "choice",
    type=click.Choice(_CHOICES),
    help="The tools for agents that do not list any, and therefore had all tools. Without this "
    "option you are asked; without a terminal it is `none`.",
)
@click.option(
    "--from", "wanted", type=click.Choice(_FORMATS), help="The format, if it is not recognized."
)
@click.option(
    "--report", type=click.Choice(["json", "md"]), help="Print how each field was converted."
)
@click.option("--dry-run", is_flag=True, help="Write nothing.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
def command(
    paths: tuple[Path, ...],
    output: Path,
    choice: str | None,
    wanted: str | None,
    report: str | None,
    dry_run: bool,
    force: bool,
) -> None:
    """Convert agents of other tools to cards.

    Reads Claude Code, VS Code and Copilot, OpenCode, Gemini CLI, Codex, docker-agent and CrewAI
    agents below each PATH, and MCP servers of `.mcp.json`, `.vscode/mcp.json` and
    `claude_desktop_config.json`. Every field that is not converted is reported.

    Exit status: 0 all files were read, 1 a file could not be read, 2 invalid usage.
    """
    from fast_agent.cli.output import report_diagnostics, standard_output
    from fast_agent.config.home import inside_working_directory, working_directory
    from fast_agent.formats.importing import plan_import, write_import

    here = working_directory()
    if output == AGENT_CARDS:
        inside_working_directory(output, hint="name the directory it leads to with `--output DIR`")
    kind = cast("Format | None", wanted)

    def plan_with(tools: ToolChoice) -> Import:
        return plan_import(paths, output, choice=tools, cwd=here, wanted=kind)

    plan = plan_with(cast("ToolChoice", choice or "none"))
    if choice is None and sys.stdin.isatty() and _open_agents(plan):
        plan = plan_with(_ask(_open_agents(plan)))
    written = [] if dry_run else write_import(plan, force=force)
    found = plan.diagnostics()
    if report is None:
        report_diagnostics(found)
        _print_list(plan, written, dry_run=dry_run)
    else:
        from fast_agent.formats.report import report_json, report_markdown

        render = report_json if report == "json" else report_markdown
        standard_output().write_facts(render(plan, written))
    if any(one.severity == "error" for one in found):
        sys.exit(1)


def _open_agents(plan: Import) -> int:
    return sum(draft.is_open for one in plan.files for draft in one.drafts)


def _ask(count: int) -> ToolChoice:
    what = "1 agent names" if count == 1 else f"{count} agents name"
    text = f"{what} no tools, and so had all of them. Give them here"
    from fast_agent.cli.output import choose

    return cast("ToolChoice", choose(text, _CHOICES, default="files"))


def _print_list(plan: Import, written: list[Path], *, dry_run: bool) -> None:
    from fast_agent.cli.output import standard_error, standard_output
    from fast_agent.config.home import working_directory
    from fast_agent.formats.report import planned_files

    out, here = standard_output(), working_directory()
    for path in planned_files(plan) if dry_run else written:
        shown = path.relative_to(here) if path.is_relative_to(here) else path
        out.line(f"{'would write' if dry_run else 'wrote'} {shown}")
    names = ", ".join(plan.servers.kept)
    if names:
        standard_error().line(f"servers that {plan.config_path} has already stay: {names}")
    if not dry_run and not written and (plan.cards or names):
        standard_error().line("everything was there already, so nothing was written")
    elif not dry_run and plan.cards:
        cards = "" if plan.output == AGENT_CARDS else f" --card {plan.output}"
        standard_error().line(f"next: fast-agent check {plan.output}, then fast-agent go{cards}")
