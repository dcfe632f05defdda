"""The table of commands, each imported when it is called."""

from __future__ import annotations

from importlib import import_module

import click

from fast_agent.version import __version__

COMMANDS = {
    "go": "Run an agent.",
    "batch": "Run an agent over many items; a killed batch can be resumed.",
    "runs": "List, show, watch, cancel, resume and export the runs of batches.",
    "worker": "Run a worker that executes runs of a Temporal server.",
    "serve": "Serve agents to MCP clients.",
    "check": "Report every problem in cards, and fix what can be fixed.",
    "diff": "Show what differs between two card sets, conversations or runs.",
    "graph": "Draw the graph of agents, and compute the maximum cost of a turn.",
    "acp": "Run agents in an editor that speaks the Agent Client Protocol.",
    "test": "Test cards against recordings.",
    "resources": "Serve, list, read, search and check resources: skills, guides, documents.",
    "fmt": "Format cards: put their fields in reference order.",
    "skills": "Find, add, update and remove skills.",
    "schema": "Print the JSON Schema of cards or of the configuration.",
    "explain": "Print the page of a rule, such as FA101.",
    "session": "List, show, export, fork, rewind and delete saved conversations.",
    "usage": "Show what sessions used, by agent, model, turn and session.",
    "trust": "Review and approve what found projects do on this machine.",
    "models": "List models; fetch and remove local ones.",
    "auth": "Authorize this program at remote MCP servers by OAuth.",
    "maker": "Plan votes: the required margin and its cost.",
    "import": "Convert agents of other tools to cards, such as those in `.claude/agents`.",
    "export": "Convert cards to agents of another tool.",
    "new": "Write a starter set of cards.",
    "completion": "Print the completion script of a shell.",
    "version": "Print the version.",
}
"""The commands in the order of the help, each with its one-line summary."""

_MODULES = {"import": "importing", "export": "exporting"}
"""Modules of commands whose names are words of Python."""


_INTERRUPTED = 130
"""The exit status after Ctrl-C: 128 and the number of SIGINT."""


class CommandTable(click.Group):
    """A group whose commands live in modules of their names."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Name the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command, or None where there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module = _MODULES.get(cmd_name, cmd_name)
        command = import_module(f"fast_agent.cli.commands.{module}").command
        return command if isinstance(command, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command, with a suggestion where there is none of that name."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            from fast_agent.text.wording import closest, did_you_mean

            near = closest(args[0], COMMANDS)
            hint = did_you_mean(near, "`fast-agent --help` lists the commands")
            ctx.fail(f"there is no command `{args[0]}`; {hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; an interrupt ends it with status 130, as shells expect.

        Click itself would exit with 1, which scripts cannot distinguish from a failure.
        """
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, click.Abort) as error:
            # At a question, click raises the same error for Ctrl-C and for the end of the input.
            if isinstance(error, click.Abort) and not isinstance(
                error.__context__, KeyboardInterrupt
            ):
                raise
            from fast_agent.cli.output import standard_error

            standard_error().write("\nAborted!\n")
            ctx.exit(_INTERRUPTED)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the table without importing a command."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(
    cls=CommandTable,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="%(version)s")
def cli() -> None:
    """Run agents written as text.

    Cards (.md and .yaml files) become agents with models, tools and MCP servers. `fast-agent new`
    writes a first set; `fast-agent go` runs it.
    """
