"""`fast-agent fmt`: cards with their fields in order and without stray blanks."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from fast_agent.cards.card_files import is_markdown
from fast_agent.cards.document import read_markdown, read_yaml
from fast_agent.cards.fields import FIELDS
from fast_agent.cli import options
from fast_agent.text.source import Source

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonValue


@click.command()
@click.argument("paths", nargs=-1, type=options.PATH, metavar="[PATH]...")
@click.option("--check", is_flag=True, help="Write nothing; status 1 where a file would change.")
def command(paths: tuple[Path, ...], check: bool) -> None:
    """Sort the fields of cards into the order of the reference.

    PATHS are files, and directories whose cards are formatted; without any it is
    `.fast-agent/agent-cards`, or else this directory. Comments and instructions stay as they are. A
    file that holds several cards, or is not read without a problem, stays as it is.

    Exit status: 0 done, 1 a file could not be formatted, or would change, 2 wrong usage.
    """
    from fast_agent.cards.load import load_cards
    from fast_agent.cli.card_options import AGENT_CARDS
    from fast_agent.cli.commands.check import LINKED
    from fast_agent.cli.output import standard_error, standard_output
    from fast_agent.text.environment import VariableNames
    from fast_agent.text.safe_file import leads_away, write_atomic

    named = paths or ((AGENT_CARDS if AGENT_CARDS.is_dir() else Path()),)
    load = load_cards(named, environ=VariableNames({}), multi_card=True)
    unread = load.unread_errors()
    if unread:
        from fast_agent.cli.output import report_diagnostics

        report_diagnostics(unread)
    if any(one.code in {"FA131", "FA134", "FA137"} for one in unread):
        sys.exit(1)
    failed = bool(unread)
    for path in dict.fromkeys(card.path for card in load.cards):
        if Path(path) not in paths and leads_away(Path(path)):
            failed = True
            standard_error().line(f"{path} {LINKED}")
            continue
        old = Path(path).read_bytes()
        new = formatted(path, old.decode("utf-8-sig"))
        if new is None:
            failed = True
            standard_error().line(f"{path} stays as it is: `fast-agent check` says what is wrong")
        elif new.encode() != old:
            failed = failed or check
            if not check:
                write_atomic(Path(path), new.encode())
            standard_output().line(f"{'would format' if check else 'formatted'} {path}")
    if failed:
        sys.exit(1)


_ORDER: Final = {item.name: number for number, item in enumerate(FIELDS)}
_KEY = re.compile(r"""["']?([A-Za-z_][\w-]*)["']?[ \t]*:""")
_FENCE: Final = "---"


def formatted(path: str, text: str) -> str | None:
    """Return a card file with its fields in the order of the reference.

    Comments stay with the field below them. Line ends become line feeds, trailing blanks go from
    the fields, and the file ends in one line end. The text of the instruction stays as it is.

    Args:
        path: Its path, whose suffix says what it is.
        text: Its text.

    Returns:
        The file; None where it holds several cards, or cannot be read.
    """
    plain = text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    before = _meaning(path, plain)
    if before is None:
        return None
    if is_markdown(path):
        head, body = plain.removeprefix(f"{_FENCE}\n").split(f"\n{_FENCE}", 1)
        made = f"{_FENCE}\n{_ordered(head)}{_FENCE}{body.rstrip()}\n"
    else:
        start = plain.startswith(f"{_FENCE}\n")
        made = f"{_FENCE}\n" * start + _ordered(plain.removeprefix(f"{_FENCE}\n"))
    # A text that would come to mean something else, such as one with an anchor, stays as it is.
    return made if _meaning(path, made) == before else None


def _meaning(path: str, text: str) -> tuple[JsonValue, str | None] | None:
    read = read_markdown if is_markdown(path) else read_yaml
    reading = read(Source(path, text), multi_card=False)
    if reading.diagnostics or len(reading.documents) != 1:
        return None
    (document,) = reading.documents
    return document.yaml.value, document.instruction()


def _ordered(fields: str) -> str:
    """Sort the fields of a mapping, each with its lines and the comments above it."""
    blocks: list[tuple[int, list[str]]] = []
    waiting: list[str] = []
    head: list[str] = []
    for line in fields.rstrip().split("\n"):
        found = _KEY.match(line)
        if found is not None:
            if not blocks:
                head, waiting = _file_comments(waiting)
            blocks.append((_ORDER.get(found[1], len(_ORDER)), [*waiting, line]))
            waiting = []
        elif line.startswith("#") or not line.strip() or not blocks:
            waiting.append(line)
        else:
            blocks[-1][1].extend([*waiting, line])
            waiting = []
    blocks.sort(key=lambda block: block[0])
    lines = [*head, *(line for _, block in blocks for line in block), *waiting]
    return "".join(f"{_trimmed(line)}\n" for line in lines)


def _file_comments(lines: list[str]) -> tuple[list[str], list[str]]:
    """Split the first comments: those for the file, such as a schema, and those for a field."""
    end = max(
        (at for at, line in enumerate(lines, 1) if "yaml-language-server" in line or not line),
        default=0,
    )
    return lines[:end], lines[end:]


def _trimmed(line: str) -> str:
    return line.rstrip() if _KEY.match(line) or line.startswith("#") else line
