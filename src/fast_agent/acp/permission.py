"""Permission: the client asks its user before commands run, files change or marked tools act.

Questions of agents to the user go the same way.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Final, cast

import anyio
from anyio.to_thread import run_sync

from fast_agent.acp.client_tools import file_diff
from fast_agent.acp.params import text_block
from fast_agent.acp.updates import call_id, locations, one_line, tool_kind, tool_title
from fast_agent.errors import ToolError
from fast_agent.rpc.message import RemoteError
from fast_agent.text.frozen import frozen
from fast_agent.tools.human import HumanAnswer, HumanRequest, asker, form_fields, named
from fast_agent.tools.permission import WRITES_FILES
from fast_agent.trust.address import address_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path

    from fast_agent.acp.client_tools import ClientFiles, ClientSide
    from fast_agent.acp.remembered import RememberedPermissions, Verdict
    from fast_agent.acp.updates import Updates
    from fast_agent.rpc.peer import Peer
    from fast_agent.runtime.protected_files import ProtectedFiles
    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.tools.human import FormField, Origins
    from fast_agent.tools.permission import PermissionRequest


_MAX_PATH = 4096
_MORE_IN_SHELLS: Final = re.compile(r"[<>$`\\(){}#!\n\r\0]")
"""Characters by which a shell does more than run the words of a line."""
_PLAIN_WORD: Final = re.compile(r"[\w./:=@%+,~-]+")
_RUNNERS: Final = (
    "sh bash dash zsh fish ksh csh tcsh ash busybox cmd powershell pwsh sudo su doas env eval exec "
    "xargs nohup nice time timeout watch ssh find parallel command builtin source . python pypy "
    "node nodejs deno bun bunx perl ruby php lua luajit tclsh expect osascript Rscript julia awk "
    "gawk mawk make npx uvx uv pipx docker podman kubectl setsid stdbuf script strace chroot "
    "unshare nsenter flock taskset ionice"
)
_RUNS_OTHERS: Final = frozenset(_RUNNERS.split())
"""Programs whose further words are programs or code, without the versions in their names."""
_VERSION: Final = "0123456789."
_KINDS = ("allow_once", "allow_always", "reject_once", "reject_always")


@frozen
class Subject:
    """What a verdict is about.

    Args:
        key: What it is remembered by.
        said: What `always` covers, as shown to the user.
        lasts: Whether it may be decided for good.
        command: The command it is about; None where it is about no command.
    """

    key: str
    said: str
    lasts: bool = True
    command: str | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of answers the user may choose from."""
        return _KINDS if self.lasts else _KINDS[::2]


class Subjects:
    """What verdicts about calls are about, alike for editors and the terminal.

    Args:
        cwd: The directory they hold in.
        resolve: Gives the absolute path an argument means, past links, or None.
        protected: Files whose every write is asked about separately.
    """

    def __init__(
        self,
        cwd: Path,
        resolve: Callable[[JsonValue], Path | None],
        protected: ProtectedFiles,
    ) -> None:
        self._cwd = cwd
        self._resolve = resolve
        self._protected = protected

    def of(self, request: PermissionRequest) -> Subject:
        """Return what a verdict about a call would be about."""
        name, arguments = request.call.name, request.call.arguments
        where = f"in {self._cwd}"
        if self._needs_its_own(request):
            return Subject(f"{request.source} {name}", one_line(name), lasts=False)
        if request.source != "runtime":
            key = f"{request.source} {name}"
            return Subject(key, f"every call of `{one_line(name)}` {where}")
        if name == "execute":
            command = str(arguments.get("command"))
            said = f"`{one_line(command)}` {where}"
            return Subject(f"execute {command}", said, command=command)
        if name == "fetch":
            site = _site(arguments.get("url"))
            return Subject(f"fetch {site}", f"pages of {one_line(site)}", lasts=bool(site))
        if name in WRITES_FILES or name in {"read_text_file", "read_file", "grep"}:
            # One answer for all ways to write a file.
            name = "write_text_file" if name in WRITES_FILES else name
            if self.is_inside(arguments) and not self._is_protected_path(arguments):
                return Subject(f"{name} *", f"files {where}")
            path = str(self._resolve(arguments.get("path")))
            return Subject(f"{name} {path}", one_line(path))
        return Subject(f"runtime {name}", f"every call of `{one_line(name)}` {where}")

    def _needs_its_own(self, request: PermissionRequest) -> bool:
        """Whether a call may change what is run or loaded without being asked for."""
        name, arguments = request.call.name, request.call.arguments
        if request.source == "runtime":
            if name not in WRITES_FILES:
                return name == "create_agent_card"
            path = self._resolve(arguments.get("path"))
            return path is None or self._protected.holds(path)
        if tool_kind(name, request.source) in {"read", "search", "fetch"}:
            return False
        paths = map(self._resolve, _paths_in(arguments))
        return any(path is not None and self._protected.holds(path) for path in paths)

    def is_inside(self, arguments: Mapping[str, JsonValue]) -> bool:
        """Whether the path of a call lies in the directory of the session."""
        path = self._resolve(arguments.get("path"))
        return path is not None and path.is_relative_to(os.path.realpath(self._cwd))

    def _is_protected_path(self, arguments: Mapping[str, JsonValue]) -> bool:
        """Whether a path leads where programs keep what they run or trust, such as `.git`."""
        path = self._resolve(arguments.get("path"))
        if path is None:
            return True
        inner = path.relative_to(os.path.realpath(self._cwd))
        return any(part.startswith(".") for part in inner.parts)


class ClientPermission:
    """Asks through the client, one question at a time.

    Args:
        peer: The client.
        session_id: The session.
        cwd: The session's directory; in it, files may be read unasked.
        updates: Shows that a call is in progress.
        remembered: What was decided for good.
        files: The client's files, for what a write changes.
        origins: Knows where agents and servers come from.
        protected: Files whose every write is asked about separately.
    """

    def __init__(
        self,
        peer: Peer,
        session_id: str,
        cwd: Path,
        updates: Updates,
        remembered: RememberedPermissions,
        files: ClientFiles,
        origins: Origins,
        protected: ProtectedFiles,
    ) -> None:
        self._origins = origins
        self._peer = peer
        self._session_id = session_id
        self._cwd = cwd
        self._updates = updates
        self._remembered = remembered
        self._files = files
        self._subjects = Subjects(cwd, files.resolve, protected)
        self._asking = anyio.Lock()

    async def ask(self, request: PermissionRequest) -> str | None:
        """Ask for permission; see `Permission.ask`."""
        name, arguments = request.call.name, request.call.arguments
        own = request.source == "runtime"
        if own and name == "read_text_file" and self._subjects.is_inside(arguments):
            return None
        subject = self._subjects.of(request)
        place = str(self._cwd)
        async with self._asking:
            verdict = None
            if subject.lasts:
                verdict = await run_sync(remembered_verdict, self._remembered, place, subject)
            if verdict is None:
                chosen = await self._choice(request, subject)
                if chosen is None:
                    return "the user did not allow it"
                verdict = "allow" if chosen.startswith("allow") else "reject"
                if chosen.endswith("always"):
                    await run_sync(self._remembered.keep, place, subject.key, verdict)
        return self._settled(request, verdict)

    def _settled(self, request: PermissionRequest, verdict: Verdict) -> str | None:
        if verdict == "reject":
            return "the user does not allow it"
        shown = call_id(request.context.turn_id, request.call.id)
        self._updates.send(
            {"sessionUpdate": "tool_call_update", "toolCallId": shown, "status": "in_progress"}
        )
        return None

    async def _choice(self, request: PermissionRequest, subject: Subject) -> str | None:
        """Ask, and return the kind of the option the user chose, or None."""
        options: list[JsonValue] = [
            {"optionId": kind, "name": self._option(kind, subject), "kind": kind}
            for kind in subject.kinds
        ]
        params: JsonObject = {
            "sessionId": self._session_id,
            "toolCall": await self._shown(request),
            "options": options,
        }
        try:
            answer = await self._peer.request("session/request_permission", params)
        except RemoteError:
            return None
        outcome = answer.get("outcome")
        return chosen_option(outcome if isinstance(outcome, dict) else {}, subject.kinds)

    def _option(self, kind: str, subject: Subject) -> str:
        verb, _, how = kind.partition("_")
        word = verb.capitalize()
        return word if how == "once" else f"{word} always: {subject.said}"

    async def _shown(self, request: PermissionRequest) -> JsonObject:
        call, context = request.call, request.context
        shown: dict[str, JsonValue] = {
            "toolCallId": call_id(context.turn_id, call.id),
            "title": tool_title(call.name, call.arguments),
            "kind": tool_kind(call.name, request.source),
            "status": "pending",
            "rawInput": dict(call.arguments),
            "locations": locations(call.arguments, self._cwd),
        }
        who: JsonObject = {"type": "content", "content": text_block(self._asker(request))}
        shown["content"] = [who]
        change = request.change
        if change is not None:
            diff = file_diff(change.path, change.old, change.new)
            shown["content"] = [who, diff]
        elif request.source == "runtime" and call.name == "write_text_file":
            diff = await self._files.difference(call.arguments)
            if diff is not None:
                shown["content"] = [who, diff]
        return shown

    def _asker(self, request: PermissionRequest) -> str:
        question = HumanRequest(message="", agent_name=request.context.agent_name)
        who = f"{asker(question, self._origins)} to call `{one_line(request.call.name)}`"
        server = request.server_name
        if server is None:
            return who
        return f"{who} of server {named(server, self._origins.server_origin(server))}"


def remembered_verdict(
    remembered: RememberedPermissions,
    place: str,
    subject: Subject,
    allowed: Collection[str] = (),
) -> Verdict | None:
    """Return what was decided for good, of a command also by patterns that cover its parts.

    Args:
        remembered: What was decided for good.
        place: The directory of the session.
        subject: What it is about.
        allowed: What is allowed in addition, by what it is remembered by.
    """
    if subject.key in allowed:
        return "allow"
    kept = remembered.all(place)
    verdict = kept.get(subject.key)
    if verdict in {"allow", "reject"}:
        return cast("Verdict", verdict)
    if subject.command is None:
        return None
    allows = {*allowed, *(key for key, verdict in kept.items() if verdict == "allow")}
    parts = command_parts(subject.command)
    if any(kept.get(f"execute {' '.join(part)}") == "reject" for part in parts):
        return "reject"
    return "allow" if parts and all(_is_covered(part, allows) for part in parts) else None


def _is_covered(part: Sequence[str], allows: Collection[str]) -> bool:
    """Whether a command of a line is allowed, as it is or by its first words."""
    if all(_PLAIN_WORD.fullmatch(word) for word in part) and f"execute {' '.join(part)}" in allows:
        return True
    return any(pattern_key(part[:count]) in allows for count in range(1, len(part) + 1))


def pattern_key(words: Sequence[str]) -> str:
    """Return what commands that start with words are remembered by, such as `execute(git *)`."""
    return f"execute({' '.join(words)} *)"


def command_patterns(command: str) -> list[tuple[str, ...]]:
    """Return patterns that cover a command line, by two and by one of the first words of each part.

    Programs that run others are left out: what they would run is in their further words.
    """
    parts = command_parts(command)
    words = [word for part in parts for word in part[:2]]
    if not parts or not all(_PLAIN_WORD.fullmatch(word) for word in words):
        return []
    if any(_runs_others(part[0]) or "=" in part[0] for part in parts):
        return []
    found = [tuple(dict.fromkeys(pattern_key(part[:count]) for part in parts)) for count in (2, 1)]
    return list(dict.fromkeys(found))


def _runs_others(program: str) -> bool:
    name = program.rpartition("/")[2]
    return name in _RUNS_OTHERS or name.rstrip(_VERSION) in _RUNS_OTHERS


def command_parts(command: str) -> list[list[str]]:
    """Cut a command line into the commands it runs, each as words.

    Returns:
        Nothing where the shell may run or write more than the words say: substitutions, variables,
        redirections, several lines.
    """
    if _MORE_IN_SHELLS.search(command):
        return []
    lexer = shlex.shlex(command, posix=True, punctuation_chars=";&|")
    lexer.whitespace_split, lexer.commenters = True, ""
    parts: list[list[str]] = [[]]
    try:
        for word in lexer:
            if word and set(word) <= set(";&|"):
                parts.append([])
            else:
                parts[-1].append(word)
    except ValueError:  # unclosed quote
        return []
    return [part for part in parts if part]


def _site(url: JsonValue) -> str:
    """Return scheme, host and port of an address; empty where it has none."""
    found = address_of(url) if isinstance(url, str) and "${" not in url else None
    return str(found) if found is not None and found.scheme else ""


def _paths_in(value: JsonValue) -> Iterator[str]:
    """Find the texts in arguments that may be paths."""
    if isinstance(value, str):
        if len(value) <= _MAX_PATH and "\n" not in value:
            yield value.removeprefix("file://")
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _paths_in(inner)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from _paths_in(inner)


def chosen_option(outcome: Mapping[str, JsonValue], offered: tuple[str, ...]) -> str | None:
    """Read the option of an answer; None where none of those offered was chosen."""
    chosen = outcome.get("optionId")
    if outcome.get("outcome") != "selected" or not isinstance(chosen, str):
        return None
    return chosen if chosen in offered else None


_MAX_CHOICES: Final = 8
_WORDS: JsonObject = {
    "type": "object",
    "properties": {"text": {"type": "string", "title": "Answer"}},
    "required": ["text"],
}
_AWAY = HumanAnswer(action="cancel")


class ClientHuman:
    """The user in front of a client.

    A client without forms is asked where the answer is one of a few: then each is an option of a
    permission. What else it cannot ask is dismissed.

    Args:
        peer: The client.
        session_id: The session.
        client: What the client offers.
        origins: Knows where agents and servers come from.
    """

    def __init__(self, peer: Peer, session_id: str, client: ClientSide, origins: Origins) -> None:
        self._origins = origins
        self._peer = peer
        self._session_id = session_id
        self._client = client
        self._numbers = count(1)

    async def ask(self, request: HumanRequest) -> HumanAnswer:
        """Ask and wait for the answer."""
        message = f"{asker(request, self._origins)}:\n{request.message}"
        try:
            if request.url is not None:
                return await self._open(message, request.url)
            if self._client.forms:
                return await self._fill(message, request.schema)
            return await self._choose(message, request.schema)
        except RemoteError:
            return _AWAY

    async def confirm(self, title: str, text: str, *, yes: str) -> bool:
        """Ask whether to continue; no answer means no.

        Args:
            title: The question, in one line.
            text: What it is about.
            yes: The name of the option that agrees.
        """
        options: list[JsonValue] = [
            {"optionId": "yes", "name": yes, "kind": "allow_once"},
            {"optionId": "no", "name": "No", "kind": "reject_once"},
        ]
        shown: JsonObject = {
            "toolCallId": f"question-{next(self._numbers)}",
            "title": title,
            "kind": "other",
            "status": "pending",
            "content": [{"type": "content", "content": text_block(text)}],
        }
        try:
            return await self._chosen(shown, options, ("yes", "no")) == "yes"
        except RemoteError:
            return False

    async def _open(self, message: str, url: str) -> HumanAnswer:
        if not self._client.links:
            return _AWAY
        answer = await self._peer.request(
            "elicitation/create",
            {"sessionId": self._session_id, "mode": "url", "message": message, "url": url,
             "elicitationId": f"link-{next(self._numbers)}"},
        )  # fmt: skip
        return _answer(answer)

    async def _fill(self, message: str, schema: JsonObject | None) -> HumanAnswer:
        form = _WORDS if schema is None else schema
        answer = await self._peer.request(
            "elicitation/create",
            {"sessionId": self._session_id, "mode": "form", "message": message,
             "requestedSchema": form},
        )  # fmt: skip
        return _answer(answer)

    async def _choose(self, message: str, schema: JsonObject | None) -> HumanAnswer:
        field = _only_field(schema)
        if field is None:
            return _AWAY
        values = _values(field)
        options: list[JsonValue] = [
            {"optionId": str(at), "name": label, "kind": _option_kind(label)}
            for at, (_, label) in enumerate(values)
        ]
        shown: JsonObject = {
            "toolCallId": f"question-{next(self._numbers)}",
            "title": " ".join(message.split("\n")[:2]),
            "kind": "other",
            "status": "pending",
            "content": [{"type": "content", "content": text_block(message)}],
        }
        offered = tuple([str(at) for at in range(len(values))])
        chosen = await self._chosen(shown, options, offered)
        if chosen is None:
            return _AWAY
        return HumanAnswer(action="accept", content={field.name: values[int(chosen)][0]})

    async def _chosen(
        self, shown: JsonObject, options: list[JsonValue], offered: tuple[str, ...]
    ) -> str | None:
        """Ask with options; returns the id of the one that was chosen, or None."""
        answer = await self._peer.request(
            "session/request_permission",
            {"sessionId": self._session_id, "toolCall": shown, "options": options},
        )
        outcome = answer.get("outcome")
        return chosen_option(outcome if isinstance(outcome, Mapping) else {}, offered)


def _answer(answer: JsonObject) -> HumanAnswer:
    action, content = answer.get("action"), answer.get("content")
    if action == "accept":
        return HumanAnswer(
            action="accept", content=content if isinstance(content, Mapping) else None
        )
    return HumanAnswer(action="decline") if action == "decline" else _AWAY


def _only_field(schema: JsonObject | None) -> FormField | None:
    """Return the only field of a form if its answer is one of a few, else None."""
    if schema is None:
        return None
    try:
        fields = form_fields(schema)
    except ToolError:
        return None
    if len(fields) != 1 or fields[0].kind == "array":
        return None
    return fields[0] if 0 < len(_values(fields[0])) <= _MAX_CHOICES else None


def _values(field: FormField) -> tuple[tuple[JsonValue, str], ...]:
    if field.kind == "boolean":
        return ((True, "yes"), (False, "no"))
    return field.choices


def _option_kind(label: str) -> str:
    return "reject_once" if label.lower() in {"no", "reject", "deny", "cancel"} else "allow_once"
