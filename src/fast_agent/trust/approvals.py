"""Approvals: what a user allowed the set of one directory, and how the set stands to it now."""

from __future__ import annotations

import json
import logging
import os
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast, get_args

from fast_agent.errors import ConfigError, os_reason
from fast_agent.text.frozen import frozen
from fast_agent.trust.effect import (
    ANY_COMMAND,
    EFFECT_KINDS,
    Effect,
    Holder,
    HolderKind,
    no_files,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.text.source import Signature
    from fast_agent.trust.found_set import FoundSet

Answer: TypeAlias = Literal["approved", "declined"]
State: TypeAlias = Literal["new", "approved", "changed", "declined"]

FILE: Final = "approvals.json"
"""Where approvals are in the home."""

TEXTS: Final = "approved"
"""The directory next to it with the texts of approved files, by digest."""

MAX_TEXT: Final = 256 << 10
"""Maximum size of a file whose approved text is kept, in bytes."""

_HOLDER_KINDS: Final = frozenset(get_args(HolderKind))
_MAX_FILE: Final = 16 << 20
_WAIT: Final = 10.0
_PROSE_KINDS: Final = frozenset({"use", "write"})

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Approval:
    """What a user answered for one root.

    Args:
        root: The real path of the root.
        answer: Whether it was a yes.
        digest: Of the set as it was.
        written: What it did then, as it is kept: most approvals are only compared with.
        files: Digests of its files then, by path relative to the root.
        prose: Whether later changes of text that add no effect are approved too.
        on: The day of the answer.
        machine: The machine it was given on.
        user: The user who gave it.
    """

    root: str
    answer: Answer
    digest: str
    written: tuple[JsonObject, ...] = field(hash=False)
    files: Mapping[str, str] = field(hash=False)
    prose: bool
    on: date
    machine: str
    user: int

    @cached_property
    def effects(self) -> tuple[Effect, ...]:
        """What it did then; nothing where that is damaged."""
        try:
            return tuple(map(_read_effect, self.written))
        except ValueError:
            log.warning("the approval of `%s` is damaged; nothing of it counts", self.root)
            return ()


@frozen
class ApprovalStatus:
    """How a set stands to its approval.

    Args:
        state: `changed` was approved as something else than it is now.
        allowed: The current effects that the approval covers.
        added: Effects it does not cover.
        gone: Effects that were approved and no longer exist.
        rewritten: Files with effects whose text changed, by path relative to the root.
        since: The day of the approval; None where there is none.
    """

    state: State
    allowed: frozenset[Effect] = frozenset()
    added: tuple[Effect, ...] = ()
    gone: tuple[Effect, ...] = ()
    rewritten: tuple[str, ...] = ()
    since: date | None = None


class Approvals:
    """The approvals of one user on one machine, kept in a file of the home.

    Args:
        home: The home; it is made when something is approved.
        machine: Identifies this machine; None looks it up.
        user: Identifies the user; None is that of the process.
        readable: Whether the file counts. False where the home is not the user's own (TR-F3):
            nothing is approved then.
    """

    def __init__(
        self,
        home: Path,
        *,
        machine: str | None = None,
        user: int | None = None,
        readable: bool = True,
    ) -> None:
        self.path = home / FILE
        self._machine = this_machine() if machine is None else machine
        self._user = _this_user() if user is None else user
        self._readable = readable
        self._known: tuple[Signature | None, tuple[Approval, ...]] | None = None
        self._compared: dict[Path, tuple[FoundSet, Approval, ApprovalStatus]] = {}

    def standing(self, found: FoundSet) -> ApprovalStatus:
        """Compare a set with what was approved for its root, or for the repository it belongs to.

        A linked worktree has the approvals of its repository for files of equal digest.
        """
        known = {one.root: one for one in self.all()}
        root = str(found.root)
        own = known.get(root)
        if own is None:
            repository = repository_of(found.root)
            lent = None if repository is None else known.get(str(repository))
            if lent is None or lent.answer == "declined":
                return ApprovalStatus("new", added=found.effects)
            standing = _compare(found, lent)
            return standing if standing.state == "approved" else _as_new(found, standing)
        if own.answer == "declined":
            same = own.digest == found.digest and set(own.effects) == set(found.effects)
            return ApprovalStatus("declined" if same else "new", added=found.effects)
        compared = self._compared.get(found.root)
        if compared is None or compared[0] is not found or compared[1] is not own:
            compared = found, own, _compare(found, own)
            self._compared[found.root] = compared
        return compared[2]

    def approve(self, found: FoundSet, *, prose: bool = False) -> None:
        """Store a yes to a set as it was shown.

        Args:
            found: The set.
            prose: Whether later changes of text that add no effect are approved too.

        Effects that cannot be approved stay closed, and are not asked about again. What an earlier
        approval covers stays approved while its files are unchanged: another command, or other
        options, may work out other effects of the same files.

        Raises:
            ConfigError: Nothing of it can be approved, or the approval cannot be saved.
        """
        refused = [effect for effect in found.effects if effect.refusal is not None]
        if refused and len(refused) == len(found.effects):
            raise ConfigError(
                f"{refused[0].holder} cannot be approved: {refused[0].refusal}",
                hint=f"change `{refused[0].place}`",
            )
        self._keep(found, "approved", prose=prose)

    def decline(self, found: FoundSet) -> None:
        """Keep a no to exactly this set.

        Raises:
            ConfigError: It cannot be kept.
        """
        self._keep(found, "declined", prose=False)

    def revoke(self, roots: Collection[str]) -> tuple[str, ...]:
        """Forget the answers for some roots.

        Args:
            roots: Real paths.

        Returns:
            Those that had one.

        Raises:
            ConfigError: The rest cannot be written.
        """
        gone: list[str] = []

        def without(known: Iterable[Approval]) -> list[Approval]:
            kept: list[Approval] = []
            for one in known:
                if one.root in roots and self._is_own(one):
                    gone.append(one.root)
                else:
                    kept.append(one)
            return kept

        self._change(without)
        return tuple(gone)

    def all(self) -> tuple[Approval, ...]:
        """Return the answers of this user on this machine; a damaged file holds none."""
        from fast_agent.text.source import signature_at

        if not self._readable:
            return ()
        signature = signature_at(str(self.path))
        if self._known is None or self._known[0] != signature or signature is None:
            self._known = signature, tuple(filter(self._is_own, self._read()))
        return self._known[1]

    def text_of(self, digest: str) -> str | None:
        """Return the text of an approved file, to show what changed; None where none was kept."""
        from fast_agent.text.safe_file import RefusedFileError, read_confined

        name = digest.removeprefix("sha256:")
        try:
            data = read_confined(self.path.parent / TEXTS, name, MAX_TEXT).data
        except RefusedFileError:
            return None
        return data.decode("utf-8", "replace") if sha256(data).hexdigest() == name else None

    def _is_own(self, approval: Approval) -> bool:
        return approval.machine == self._machine and approval.user == self._user

    def _keep(self, found: FoundSet, answer: Answer, *, prose: bool) -> None:
        fresh = Approval(
            root=str(found.root),
            answer=answer,
            digest=found.digest,
            written=tuple(map(_written_effect, found.effects)),
            files=found.files,
            prose=prose,
            on=date.today(),  # noqa: DTZ011 - the user's own day
            machine=self._machine,
            user=self._user,
        )

        def with_it(known: Iterable[Approval]) -> list[Approval]:
            rest: list[Approval] = []
            whole = fresh
            for one in known:
                if one.root != fresh.root or not self._is_own(one):
                    rest.append(one)
                elif one.answer == answer == "approved":
                    whole = _with_earlier(fresh, one)
            return [*rest, whole]

        if answer == "approved":
            self._change(with_it, found.texts)
        else:
            self._change(with_it, what="your no")

    def _read(self) -> list[Approval]:
        from fast_agent.text.safe_file import RefusedFileError, read_confined

        try:
            data = read_confined(self.path.parent, self.path.name, _MAX_FILE).data
        except RefusedFileError as refusal:
            if not refusal.missing:
                log.warning("`%s` %s; nothing counts as approved", self.path, refusal.message)
            return []
        try:
            return [_read_approval(one) for one in json.loads(data)["approvals"]]
        except (ValueError, RecursionError, KeyError, TypeError):
            log.warning("`%s` is not a file of approvals; nothing counts as approved", self.path)
            return []

    def _change(
        self,
        change: Callable[[Iterable[Approval]], Iterable[Approval]],
        texts: Mapping[str, str] = MappingProxyType({}),
        what: str = "the approval",
    ) -> None:
        """Change the file, with no other process between reading and writing."""
        from fast_agent.text.safe_file import FileLock, write_atomic

        if not self._readable:
            raise ConfigError(
                f"{what} cannot be saved: `{self.path.parent}` is not your own home",
                hint="set FAST_AGENT_HOME to a directory of yours outside the project",
            )
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = FileLock(self.path.with_suffix(".lock"))
            if not lock.take(wait=_WAIT):
                raise ConfigError(f"{what} cannot be saved: another process is writing approvals")
            try:
                after = list(change(self._read()))
                self._keep_texts(after, texts)
                facts = {"version": 1, "approvals": [_written_approval(one) for one in after]}
                text = json.dumps(facts, indent=1, ensure_ascii=False) + "\n"
                write_atomic(self.path, text.encode("utf-8", "surrogatepass"))
                self.path.chmod(0o600)
                self._known = None
            finally:
                lock.release()
        except OSError as error:
            reason = os_reason(error)
            raise ConfigError(f"{what} cannot be saved: {reason}") from error

    def _keep_texts(self, approvals: Iterable[Approval], texts: Mapping[str, str]) -> None:
        """Keep the texts of approved files, and drop those no approval names any more."""
        from fast_agent.text.safe_file import write_atomic

        folder = self.path.parent / TEXTS
        folder.mkdir(mode=0o700, exist_ok=True)
        for text in texts.values():
            data = text.encode("utf-8", "surrogatepass")
            place = folder / sha256(data).hexdigest()
            if len(data) <= MAX_TEXT and not place.exists():
                write_atomic(place, data)
        named = {
            digest.removeprefix("sha256:") for one in approvals for digest in one.files.values()
        }
        for place in folder.iterdir():
            if place.name not in named and not place.name.startswith("."):
                place.unlink(missing_ok=True)


def repository_of(root: Path) -> Path | None:
    """Return the main work tree of the repository a linked git worktree belongs to.

    The worktree's `.git` file and the repository's entry must point at each other: a directory that
    only claims to be a worktree gets nothing.

    Args:
        root: A directory without links.

    Returns:
        The directory; None where `root` is not a linked worktree.
    """
    try:
        claim = (root / ".git").read_text(encoding="utf-8")[:4_096]
        if not claim.startswith("gitdir: "):
            return None
        entry = Path(os.path.realpath(root / claim.removeprefix("gitdir: ").rstrip("\n")))
        answer = (entry / "gitdir").read_text(encoding="utf-8")[:4_096].rstrip("\n")
        common = (entry / "commondir").read_text(encoding="utf-8")[:4_096].rstrip("\n")
    except (OSError, UnicodeDecodeError, ValueError):
        return None
    if Path(os.path.realpath(entry / answer)) != Path(os.path.realpath(root / ".git")):
        return None
    repository = Path(os.path.realpath(entry / common))
    if repository.name != ".git" or entry.parent != repository / "worktrees":
        return None
    return repository.parent


def this_machine() -> str:
    """Return an identifier of this machine that does not reveal which it is."""
    for place in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        try:
            name = Path(place).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if name:
            break
    else:
        import platform

        name = platform.node()
    return sha256(f"fast-agent {name}".encode()).hexdigest()[:16]


def _this_user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


def _compare(found: FoundSet, approval: Approval) -> ApprovalStatus:
    now = frozenset(found.effects)
    closed = any(one.refusal is not None for one in found.effects)
    can_act = frozenset(one for one in now if one.refusal is None) if closed else now
    same_files = found.digest == approval.digest
    if same_files and tuple(map(_written_effect, found.effects)) == approval.written:
        return ApprovalStatus("approved", can_act, since=approval.on)
    before = frozenset(approval.effects)
    if same_files and now == before:
        return ApprovalStatus("approved", can_act, since=approval.on)
    rewritten = _rewritten(found, approval)
    allowed = frozenset(one for one in can_act & before if one.path not in rewritten)
    added = tuple(one for one in found.effects if one not in before)
    gone = tuple(one for one in approval.effects if one not in now)
    if not added and not rewritten:
        return ApprovalStatus("approved", can_act, gone=gone, since=approval.on)
    return ApprovalStatus("changed", allowed, added, gone, rewritten, approval.on)


def _with_earlier(approval: Approval, earlier: Approval) -> Approval:
    """Add what an earlier approval of the root covers, if the files of both are the same ones."""
    if any(earlier.files.get(path, digest) != digest for path, digest in approval.files.items()):
        return approval
    # An effect of the same name with other files behind it replaces the earlier one.
    now = {(one.kind, one.subject, one.holder, one.path) for one in approval.effects}
    kept = [
        (written, one.path)
        for written, one in zip(earlier.written, earlier.effects, strict=False)
        if (one.kind, one.subject, one.holder, one.path) not in now
    ]
    files = {path: earlier.files[path] for _, path in kept if path in earlier.files}
    return replace(
        approval,
        written=(*approval.written, *(written for written, _ in kept)),
        files={**files, **approval.files},
        prose=approval.prose or earlier.prose,
    )


def _rewritten(found: FoundSet, approval: Approval) -> tuple[str, ...]:
    """Return the files whose text changed in a way that asks again.

    Of a set that another user may write to, that is any of them; else those with effects.
    Fewer effects never ask, and text alone does not where the user said so; but the words of a
    file that hands out a shell, a write or something given decide what happens with it.
    """
    if found.is_strange:
        names = {**approval.files, **found.files}
        return tuple(one for one in names if found.files.get(one) != approval.files.get(one))
    before: dict[str, int] = {}
    for effect in approval.effects:
        before[effect.path] = before.get(effect.path, 0) + 1
    effects: dict[str, list[Effect]] = {}
    for effect in found.effects:
        effects.setdefault(effect.path, []).append(effect)
    changed: list[str] = []
    for path, own in effects.items():
        if found.files.get(path) == approval.files.get(path):
            continue
        harmless = approval.prose or len(own) < before.get(path, 0)
        if not harmless or any(map(_depends_on_prose, own)):
            changed.append(path)
    return tuple(changed)


def _depends_on_prose(effect: Effect) -> bool:
    shell = effect.kind == "run" and effect.subject.startswith(ANY_COMMAND)
    return effect.kind in _PROSE_KINDS or shell


def _as_new(found: FoundSet, standing: ApprovalStatus) -> ApprovalStatus:
    """Lend a worktree what is equal in its repository; the rest is new to it."""
    allowed = standing.allowed
    rest = tuple(effect for effect in found.effects if effect not in allowed)
    return ApprovalStatus("new", allowed, rest)


def _written_approval(approval: Approval) -> JsonObject:
    return {
        "root": approval.root,
        "answer": approval.answer,
        "on": approval.on.isoformat(),
        "machine": approval.machine,
        "user": approval.user,
        "digest": approval.digest,
        "prose": approval.prose,
        "effects": list(approval.written),
        "files": dict(approval.files),
    }


def _written_effect(effect: Effect) -> JsonObject:
    written: dict[str, JsonValue] = {
        "kind": effect.kind,
        "subject": effect.subject,
        "holder": [effect.holder.kind, effect.holder.name],
        "path": effect.path,
    }
    if effect.line is not None:
        written["line"] = effect.line
    if effect.files:
        written["files"] = dict(effect.files)
    if effect.terms:
        written["terms"] = list(effect.terms)
    return written


def _read_approval(value: object) -> Approval:
    """Read one approval.

    Raises:
        ValueError: It is not one.
    """
    facts = _mapping(value)
    answer = facts.get("answer")
    on = facts.get("on")
    if answer not in get_args(Answer) or not isinstance(on, str):
        raise ValueError("not an approval")
    user = facts.get("user")
    effects = facts.get("effects")
    if not isinstance(user, int) or not isinstance(effects, list):
        raise ValueError("not an approval")  # noqa: TRY004 - one error for a damaged file
    return Approval(
        root=_text(facts, "root"),
        answer=cast("Answer", answer),
        digest=_text(facts, "digest"),
        written=tuple(map(_object, cast("list[object]", effects))),
        files=_digests(facts.get("files")),
        prose=facts.get("prose") is True,
        on=date.fromisoformat(on),
        machine=_text(facts, "machine"),
        user=user,
    )


def _read_effect(value: object) -> Effect:
    facts = _mapping(value)
    holder = facts.get("holder")
    kind = facts.get("kind")
    pair = cast("list[object]", holder) if isinstance(holder, list) else []
    if kind not in EFFECT_KINDS or len(pair) != 2 or pair[0] not in _HOLDER_KINDS:
        raise ValueError("not an effect")
    line = facts.get("line")
    terms = facts.get("terms", [])
    return Effect(
        kind=kind,
        subject=_text(facts, "subject"),
        holder=Holder(cast("HolderKind", pair[0]), str(pair[1])),
        path=_text(facts, "path"),
        line=line if isinstance(line, int) else None,
        files=_digests(facts["files"]) if "files" in facts else no_files(),
        terms=tuple(map(str, cast("list[object]", terms))) if isinstance(terms, list) else (),
    )


def _object(value: object) -> JsonObject:
    return cast("JsonObject", _mapping(value))


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ValueError("not a mapping")  # noqa: TRY004 - one error for a damaged file
    return cast("dict[str, object]", value)


def _text(facts: Mapping[str, object], name: str) -> str:
    value = facts.get(name)
    if not isinstance(value, str):
        raise ValueError(f"`{name}` is not a string")  # noqa: TRY004 - as above
    return value


def _digests(value: object) -> Mapping[str, str]:
    digests = {str(name): str(digest) for name, digest in _mapping(value).items()}
    return MappingProxyType(digests)
