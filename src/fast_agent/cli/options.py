"""The options that commands have in common, each in the words of its command."""

from __future__ import annotations

import re
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    Option = Callable[[Callable[..., Any]], Callable[..., Any]]

PATH = click.Path(path_type=Path)
"""A path, which need not be there."""


def together(*options: Option) -> Option:
    """Make one decorator of several options, shown in this order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        return reduce(lambda inner, option: option(inner), reversed(options), command)

    return decorate


def cards(whose: str) -> Option:
    """Return the options that load cards.

    Args:
        whose: The agent that gets those of `--card-tool`.
    """
    return together(
        click.option(
            "--card",
            "--agent-cards",
            "cards",
            multiple=True,
            metavar="PATH|URL",
            help="Load cards from a file, a directory or an address; may be repeated.",
        ),
        click.option(
            "--card-tool",
            "card_tools",
            multiple=True,
            metavar="PATH|URL",
            help=f"Load cards as tools of {whose}; may be repeated.",
        ),
        MULTI_CARD,
    )


def servers(help_text: str) -> Option:
    """Return `--servers`, with its purpose."""
    return click.option("--servers", multiple=True, metavar="NAMES", help=help_text)


def trust(loads: str) -> Option:
    """Return `--trust`.

    Args:
        loads: Who loads cards whose code may run, in addition to those that load automatically.
    """
    help_text = (
        f"Let everything found act in this run: what came with the project, what {loads} loads."
    )
    return together(
        click.option("--trust", is_flag=True, help=help_text),
        click.option(
            "--no-found", is_flag=True, help="Ignore everything that came with the project."
        ),
    )


def child_history() -> Option:
    """Return the options of what called agents start with, and of where their messages go."""
    from fast_agent.cards.agent_config import HISTORIES

    return together(
        click.option(
            "--child-history-source",
            type=click.Choice(HISTORIES),
            help="The history that sub-agents start with, overriding the cards.",
        ),
        click.option(
            "--child-history-merge-target",
            type=click.Choice(HISTORIES),
            help="Where new messages of sub-agents are merged, overriding the cards.",
        ),
    )


def shell(help_text: str = "Allow every agent to run shell commands.") -> Option:
    """Return `--shell`, with what it allows agents to do."""
    return click.option("--shell", is_flag=True, help=help_text)


def files() -> Option:
    """Return `--files` and `--fetch`, what every agent may do with files and web pages."""
    return together(
        click.option(
            "--files",
            type=click.Choice(["read", "write"]),
            help="Allow every agent to read, or read and write, files in the working directory.",
        ),
        click.option("--fetch", is_flag=True, help="Allow every agent to fetch web pages."),
    )


ALLOW = click.option(
    "--allow",
    multiple=True,
    metavar="PATTERN",
    help="Permit calls without asking: a tool, `execute(git *)`, `fetch(SITE)`; may be repeated.",
)


def quiet(help_text: str) -> Option:
    """Return `--quiet`, with what is printed then."""
    return click.option("--quiet", "-q", is_flag=True, help=help_text)


def output_format(*forms: str, help_text: str | None = None) -> Option:
    """Return `--format`, one of `human` and those named; it is passed on as `output`."""
    choice = click.Choice(["human", *forms])
    return click.option(
        "--format", "output", type=choice, default="human", show_default=True, help=help_text
    )


MULTI_CARD = click.option("--multi-card", is_flag=True, help="Allow several cards in one file.")

MODEL = click.option(
    "--model", metavar="SPEC", help="Use this model for every agent, overriding the cards."
)

WATCH = click.option("--watch", is_flag=True, help="Reload cards when their files change.")

NO_SESSION = click.option("--no-session", is_flag=True, help="Keep conversations in memory only.")

CONFIG_PATH = click.option(
    "--config-path", "-c", type=PATH, metavar="FILE", help="The configuration file."
)

CONNECTION = "fast_agent.temporal."
"""The prefix of what `click.Context.meta` holds of the options of the connection."""
_STORE = "fast_agent.sessions."
STORE_CONFIG = f"{_STORE}config_path"
"""Where it holds the configuration file that names the database of sessions."""


def _keep(prefix: str, ctx: click.Context, parameter: click.Parameter, value: object) -> None:
    """Keep an option for the one function that uses it: every command would pass it on alike."""
    if value not in {None, False}:
        ctx.meta[f"{prefix}{str(parameter.name).removeprefix('temporal_')}"] = value


STORE = click.option(
    "--config-path", "-c", type=PATH, metavar="FILE", expose_value=False,
    callback=partial(_keep, _STORE),
    help="The configuration file that names the database of sessions.",
)  # fmt: skip

DUMP = together(
    click.option(
        "--dump", "--dump-agents", "dump", type=PATH, metavar="DIR", help="Write cards as Markdown."
    ),
    click.option(
        "--dump-yaml", "--dump-agents-yaml", type=PATH, metavar="DIR", help="Write cards as YAML."
    ),
    click.option("--dump-agent", metavar="NAME", help="Write one card to --dump-agent-path."),
    click.option(
        "--dump-agent-path", type=PATH, metavar="FILE", help="The file that --dump- agent writes."
    ),
    click.option("--dump-agent-yaml", is_flag=True, help="Write that card as YAML."),
)

_of_connection = partial(click.option, expose_value=False, callback=partial(_keep, CONNECTION))

TEMPORAL_ADDRESS = together(
    click.option(
        "--temporal-address",
        metavar="HOST:PORT",
        help="The Temporal server, overriding `temporal.address`.  [default: 127.0.0.1:7233]",
    ),
    _of_connection("--temporal-namespace", metavar="NAME", help="The namespace of the runs."),
    _of_connection("--temporal-tls", is_flag=True, help="Encrypt the connection."),
    _of_connection(
        "--temporal-server-ca", type=PATH, metavar="FILE",
        help="Certificates to check the server's with.",
    ),
    _of_connection(
        "--temporal-client-certificate", type=PATH, metavar="FILE",
        help="The certificate of this client.",
    ),
    _of_connection(
        "--temporal-client-key", type=PATH, metavar="FILE", help="The key of that certificate."
    ),
    _of_connection(
        "--temporal-api-key-file", type=PATH, metavar="FILE",
        help="A file with the API key of the server.",
    ),
)  # fmt: skip

ENGINE = together(
    click.option(
        "--engine",
        type=click.Choice(["embedded", "temporal"]),
        default="embedded",
        show_default=True,
        help="Run in this process, or by the workers of a Temporal server.",
    ),
    TEMPORAL_ADDRESS,
)


def _seconds(ctx: click.Context, parameter: click.Parameter, text: str) -> float:
    """Read an age, such as `30d`."""
    del ctx, parameter
    match = re.fullmatch(r"(\d+)([smhdw])", text)
    if match is None:
        raise click.BadParameter(
            f"`{text}` is not an age; write a number and s, m, h, d or w: `30d`"
        )
    return float(match[1]) * _UNIT_SECONDS[match[2]]


_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}

AGE = click.option(
    "--older-than", required=True, metavar="AGE", callback=_seconds,
    help="Their age, such as 12h, 30d or 8w.",
)  # fmt: skip
"""`--older-than`, in seconds."""
