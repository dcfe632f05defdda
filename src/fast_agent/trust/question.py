"""The question: what a found set wants to do, as a user reads it, and their answer."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, runtime_checkable

from fast_agent.diagnostics.rules import UNTRUSTED_CODE
from fast_agent.errors import UnapprovedError
from fast_agent.text.visible import visible
from fast_agent.trust.address import shown_address
from fast_agent.trust.digest import ABSENT
from fast_agent.trust.effect import EFFECT_KINDS
from fast_agent.trust.origin import address_of_root

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import TextIO

    from fast_agent.text.json_value import JsonObject
    from fast_agent.trust.approvals import Approvals, ApprovalStatus
    from fast_agent.trust.effect import Effect
    from fast_agent.trust.found_set import FoundSet

Reply: TypeAlias = Literal["always", "once", "no"]
"""`always` until the set changes, `once` for this run."""

MAX_LINES: Final = 40
"""Maximum number of effects shown before a count."""

_QUESTION: Final = "Let it?"
_CHOICES: Final = (
    "y yes, until any of this changes",
    "o only now",
    "v view the files",
    "n no (default)",
)

_INDENT: Final = " " * 11
_NARROW: Final = 43
_WIDE: Final = 72
_MARKS: Final = (" ", "+", "-", "~")


@runtime_checkable
class RedactingStream(Protocol):
    """A stream that hides what looks like a secret."""

    def whole(self) -> TextIO:
        """Return it for text of which nothing is hidden."""
        ...


class Asker(Protocol):
    """Asks a user whether a found set may act."""

    def __call__(self, found: FoundSet, standing: ApprovalStatus) -> Reply:
        """Ask about one set.

        Args:
            found: The set.
            standing: How it stands to its approval.

        Returns:
            The answer; `no` where there is none.
        """
        ...


def render_question(
    found: FoundSet, standing: ApprovalStatus, *, columns: int | None = None
) -> str:
    """Write what is asked, without the choices.

    A set that is new shows all its effects; one that changed only the difference.

    Args:
        found: The set.
        standing: How it stands to its approval.
        columns: Width of the terminal; None does not wrap lines.
    """
    shown = shown_root(found.root)
    if standing.since is None:
        owner = "" if found.owner is None else f" Its files belong to the user `{found.owner}`."
        owner += " Everyone may write to its files." if found.is_open else ""
        came = "from this address" if found.is_remote else "with the project"
        wants = f"wants to act on this machine. It came {came}; nothing of it has run."
        if not found.effects:
            wants = (
                "acts on nothing of this machine, and its agents answer."
                " Approved, their turns may make more than 50 model requests."
            )
        lines = [f"`{shown}` {wants}{owner}", *effect_lines(standing.added, columns=columns)]
    else:
        on = f"{standing.since.day} {standing.since:%B}"
        lines = [f"`{shown}` changed since {on}:", *_difference(found, standing, columns)]
    talking = _model_line(found)
    if talking:
        lines.append(talking)
    if standing.since is not None and not found.is_remote:
        lines.append("Yours? `fast-agent trust --own` stops asking here")
    return "".join(f"{one}\n" for line in lines for one in _wrapped(visible(line), columns))


def effect_lines(
    effects: Iterable[Effect], mark: str = " ", *, columns: int | None = None
) -> list[str]:
    """Write effects as lines in columns, `run` first; after 40 a count.

    Args:
        effects: The effects.
        mark: The character in front: `+` for what is new, `-` for what is gone.
        columns: Width of the terminal: where a line is wider, places stand below the subjects.
    """
    ordered = sorted(effects, key=lambda one: EFFECT_KINDS.index(one.kind))
    width = max((len(one.subject) for one in ordered if len(one.subject) <= _WIDE), default=0)
    width = max(width, _NARROW)
    rows: list[tuple[str, str, Effect]] = []
    before = None
    for effect in ordered[:MAX_LINES]:
        kind = effect.kind if effect.kind != before else ""
        before = effect.kind
        place = f"{effect.holder}, {effect.place}"
        rows.append((f"{mark} {kind:<8} {effect.subject:<{width}}", place, effect))
    below = columns is not None and any(
        len(head) + 1 + len(place) > columns for head, place, _ in rows
    )
    lines: list[str] = []
    for head, place, effect in rows:
        lines += [head.rstrip(), f"{_INDENT}{place}"] if below else [f"{head} {place}"]
        notes = (*effect.notes, *(() if effect.refusal is None else (effect.refusal,)))
        lines += [f"{_INDENT}! {note}" for note in dict.fromkeys(notes)]
    rest = len(ordered) - MAX_LINES
    if rest > 0:
        lines.append(f"  and {rest} more; `fast-agent trust --format json` lists all")
    return [visible(line) for line in lines]


def refusal(found: FoundSet, effects: Sequence[Effect], *, agent: str | None) -> UnapprovedError:
    """Make the error for a run in which no user can be asked.

    Args:
        found: The set.
        effects: Its effects that are not allowed.
        agent: The agent that was asked for, or would be the default; None for the whole set.
    """
    root = shown_root(found.root)
    who = f"`{root}`" if agent is None else f"`{agent}` of `{root}`"
    lines = [f"{visible(who)} may not act yet; nothing was started", *effect_lines(effects)]
    if all(effect.refusal is not None for effect in effects):
        hint = "correct what `!` marks: no approval allows it"
        once = "`--no-found` continues without it"
    else:
        hint = (
            f"read it, then `fast-agent trust {root}`; in CI FAST_AGENT_TRUST={found.digest} "
            "(exactly this set)"
        )
        once = "`--trust` lets everything act this once; `--no-found` continues without it"
    if not found.is_remote:
        hint += f";\n      {once}"
    return UnapprovedError("\n".join(lines), hint=hint, code=UNTRUSTED_CODE)


def by_trust(names: Sequence[str], effects: Iterable[Effect]) -> str:
    """Write the line that says what `--trust` let act.

    Args:
        names: The agents, in load order.
        effects: What they would do; what nothing may allow is not counted.
    """
    counts = Counter(effect.kind for effect in effects if effect.refusal is None)
    many = ", ".join(f"{kind} {counts[kind]}" for kind in EFFECT_KINDS if counts[kind])
    first = f"`{names[0]}`" if names else "the configuration"
    rest = len(names) - 1
    others = f" and {rest} {'other' if rest == 1 else 'others'}" if rest > 0 else ""
    act = "act" if len(names) > 1 else "acts"
    return f"by --trust {first}{others} {act} in this run: {many or 'no effects'}"


def as_json(found: FoundSet, standing: ApprovalStatus) -> JsonObject:
    """Return everything about a set, with its digest, for programs."""
    return {
        "root": str(found.root),
        "digest": found.digest,
        "owner": found.owner,
        "state": standing.state,
        "since": None if standing.since is None else standing.since.isoformat(),
        "effects": [
            {
                "kind": effect.kind,
                "subject": effect.subject,
                "holder": {"kind": effect.holder.kind, "name": effect.holder.name},
                "file": effect.path,
                "line": effect.line,
                "allowed": effect in standing.allowed,
                "notes": list(effect.notes),
                "refusal": effect.refusal,
                "files": dict(effect.files),
            }
            for effect in found.effects
        ],
        "files": dict(found.files),
        "models": dict(found.models),
    }


def file_lines(found: FoundSet, approvals: Approvals | None = None) -> Iterator[str]:
    """Write the files of a set for reading; of those that were approved, what changed.

    Args:
        found: The set.
        approvals: Where approved texts are; None shows whole files.
    """
    from difflib import unified_diff

    before = _approved_files(found, approvals)
    named = dict.fromkeys(chain(found.texts, *(effect.files for effect in found.effects)))
    for name in sorted(named):
        text = found.texts.get(name)
        if text is None:
            text = _text_of(found.root / name)
        if text is None:
            continue
        known = before.get(name)
        old = None if approvals is None or known is None else approvals.text_of(known)
        yield f"--- {visible(name)}"
        if old is not None:
            shown = list(unified_diff(old.splitlines(), text.splitlines(), lineterm="", n=2))[2:]
            yield from (f"  {visible(line)}" for line in shown or ["(as approved)"])
        else:
            yield from (f"  {visible(line)}" for line in text.splitlines())


class TerminalAsker:
    """A user at a terminal, asked on standard error.

    Args:
        approvals: Where approved texts are, to show what changed.
        source: Where answers come from: standard input.
        sink: Where questions go: standard error.
    """

    def __init__(self, approvals: Approvals, source: TextIO, sink: TextIO) -> None:
        self._approvals = approvals
        self._source = source
        self._sink = sink

    @property
    def can_ask(self) -> bool:
        """Return whether both streams are terminals."""
        return _is_terminal(self._source) and _is_terminal(self._sink)

    def __call__(self, found: FoundSet, standing: ApprovalStatus) -> Reply:
        """Ask about one set. Keys typed before the question was shown never answer it."""
        columns = _columns(self._sink)
        choices = f"{_QUESTION}  {'   '.join(_CHOICES)}"
        if columns is not None and len(choices) + 2 >= columns:
            choices = "\n  ".join((_QUESTION, *_CHOICES))
        self._sink.write(render_question(found, standing, columns=columns))
        while True:
            self._forget_typed()
            self._sink.write(f"{choices} ")
            self._sink.flush()
            answer = self._source.readline().strip().lower()
            if answer != "v":
                return {"y": "always", "o": "once"}.get(answer, "no")  # type: ignore[return-value]
            for line in file_lines(found, self._approvals):
                self._sink.write(f"{line}\n")

    def confirm(self, text: str, choices: str) -> bool:
        """Ask a question whose one yes is `y`.

        Args:
            text: What is asked about, in lines.
            choices: The choices, in one line.
        """
        self._sink.write(f"{text}\n")
        self._forget_typed()
        self._sink.write(f"{choices} ")
        self._sink.flush()
        return self._source.readline().strip().lower() == "y"

    def _forget_typed(self) -> None:
        with suppress(ImportError, OSError, ValueError):
            import termios

            termios.tcflush(self._source.fileno(), termios.TCIFLUSH)


def at_terminal(approvals: Approvals) -> TerminalAsker | None:
    """Return what asks the user at the terminal; None where there is none."""
    import sys

    # A user approves what they read, so nothing of it may be hidden.
    sink = sys.stderr.whole() if isinstance(sys.stderr, RedactingStream) else sys.stderr
    asker = TerminalAsker(approvals, sys.stdin, sink)
    return asker if asker.can_ask else None


def shown_root(root: Path) -> str:
    """Write a root as people would: `~/src/desk`, or the address of a remote card."""
    address = address_of_root(root)
    if address is not None:
        return shown_address(address)
    with suppress(RuntimeError, ValueError):
        return f"~/{root.relative_to(Path.home()).as_posix()}"
    return str(root)


def _difference(found: FoundSet, standing: ApprovalStatus, columns: int | None) -> Iterator[str]:
    gone = {_without_files(one): one for one in standing.gone}
    added: list[Effect] = []
    changed: list[Effect] = []
    for one in standing.added:
        before = gone.pop(_without_files(one), None)
        if before is None:
            added.append(one)
        else:
            changed.append(replace(one, notes=(*one.notes, *_changed_files(before, one))))
    for effects, mark in ((added, "+"), (gone.values(), "-"), (changed, "~")):
        yield from effect_lines(effects, mark, columns=columns)
    for path in standing.rewritten:
        names = dict.fromkeys(str(one.holder) for one in found.effects if one.path == path)
        yield f"~ {'text':<8} {path:<{_NARROW}} {', '.join(names)}".rstrip()


def _without_files(effect: Effect) -> Effect:
    return replace(effect, files={})


def _changed_files(before: Effect, now: Effect) -> Iterator[str]:
    names = before.files.keys() | now.files.keys()
    unasked = [one for one in now.files.keys() - before.files.keys() if now.files[one] == ABSENT]
    for name in sorted(names.difference(unasked)):
        if name not in before.files:
            yield f"{name} is new"
        elif name not in now.files:
            yield f"{name} is no longer among its files"
        elif before.files[name] != now.files[name]:
            yield f"{name} changed"
    if unasked:  # of a version that knew fewer files of its launcher
        yield f"it covers files that are not there yet, such as {min(unasked)}"


def _wrapped(line: str, columns: int | None) -> list[str]:
    """Wrap a line at words, indented below an effect: what it says never looks like another.

    A long word stays whole, to be copied: what the terminal moves to the next line has no blank.
    """
    if columns is None or len(line) <= columns:
        return [line]
    import textwrap

    indent = _INDENT if line[:1] in _MARKS else ""
    return textwrap.wrap(
        line,
        max(columns, 40),
        subsequent_indent=indent,
        break_long_words=not line.isascii(),  # another blank than that of ASCII may be in it
        break_on_hyphens=False,
    )


def _model_line(found: FoundSet) -> str | None:
    if not found.models:
        return None
    many = len(found.models)
    cards = "1 card talks" if many == 1 else f"{many} cards talk"
    names = ", ".join(dict.fromkeys(found.models.values()))
    return f"{cards} to models with your keys: {names}."


def _approved_files(found: FoundSet, approvals: Approvals | None) -> dict[str, str]:
    if approvals is None:
        return {}
    own = (one for one in approvals.all() if one.root == str(found.root))
    return {name: digest for one in own for name, digest in one.files.items()}


def _text_of(file: Path) -> str | None:
    try:
        with file.open("rb") as opened:
            return opened.read(256 << 10).decode("utf-8", "replace")
    except OSError:
        return None


def _columns(stream: TextIO) -> int | None:
    """Return the width of a terminal; None where it does not say."""
    import os

    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False  # it is closed
