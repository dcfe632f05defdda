"""What a server says of one skill, checked before anything believes it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from fast_agent.errors import ResourceError
from fast_agent.resources.problem import InvalidUri
from fast_agent.resources.problem import shown as visible
from fast_agent.resources.skill.files import HEAD
from fast_agent.resources.skill.frontmatter import is_name
from fast_agent.resources.uri import Uri
from fast_agent.text.frozen import frozen
from fast_agent.text.wording import first_of
from fast_agent.trust.effect import EASING_FIELDS

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonObject, JsonValue

EXTENSION = "io.modelcontextprotocol/skills"
DYNAMIC = "dynamic"
FORK = "fork"
"""The value of `context` by which a skill is carried out in a separate conversation."""

ACTING_FIELDS = frozenset(EASING_FIELDS)
"""Fields that say how an agent works while it uses the skill."""

MAX_FILES = 512
MAX_BYTES = 16 << 20

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class SkillError(ResourceError):
    """A skill, or a file of one, cannot be used."""


@frozen
class SkillResource:
    """A file of a skill, as its server lists it.

    Args:
        uri: Its URI.
        sent: The same as the server spells it, which is how it is asked for.
        digest: `sha256:` and 64 hexadecimal digits of its bytes; None if unknown.
        size: In bytes; None if unknown.
    """

    uri: Uri
    sent: str
    digest: str | None = None
    size: int | None = None


@frozen
class SkillFields:
    """What the fields of a skill ask of the turn it is used in, as far as they are obeyed.

    Args:
        name: The skill.
        allowed_tools: Its `allowed-tools`, as written.
        model: The model to ask; None is the agent's own.
        forks: Whether it is carried out in a separate conversation.
    """

    name: str
    allowed_tools: JsonValue = None
    model: str | None = None
    forks: bool = False


@frozen
class SkillCall:
    """A skill that a user called by name.

    Args:
        fields: What its fields ask.
        text: The message for the agent that carries it out.
    """

    fields: SkillFields
    text: str


@frozen
class SkillEntry:
    """A skill as its source lists it.

    Args:
        head: Its `SKILL.md`.
        name: Its name.
        description: What it is for; empty if unknown.
        frontmatter: All its frontmatter; None from servers that do not provide it.
        files: Its files by their path in the skill; None where the server makes them as they are
            asked for.
        directory: Where it is on this machine; None for a skill of a server.
        obeys: Fields of `ACTING_FIELDS` that have an effect; none of a skill of a server.
    """

    head: SkillResource
    name: str
    description: str
    frontmatter: JsonObject | None
    files: Mapping[str, SkillResource] | None
    directory: str | None = None
    obeys: frozenset[str] = frozenset()

    @property
    def fields(self) -> SkillFields:
        """What its fields ask of the turn it is used in."""
        written = {name: (self.frontmatter or {}).get(name) for name in self.obeys}
        return SkillFields(
            self.name,
            written.get("allowed-tools"),
            model_in(written.get("model")),
            forks=written.get("context") == FORK,
        )

    @property
    def uri(self) -> str:
        """The canonical URI of its `SKILL.md`, which names the skill at its source."""
        return self.head.uri.text

    @property
    def fingerprint(self) -> str | None:
        """A hash of which files it has and of their contents; None if unknown."""
        if self.files is None or any(file.digest is None for file in self.files.values()):
            return None
        from hashlib import sha256
        from json import dumps

        pairs = sorted([file.uri.text, file.digest] for file in self.files.values())
        return f"sha256:{sha256(dumps(pairs).encode()).hexdigest()}"

    def file(self, path: str) -> SkillResource:
        """Find one of its files.

        Args:
            path: In the skill, with `/` between names; or a whole URI.

        Raises:
            SkillError: It is not a file of the skill.
        """
        try:
            uri = Uri.parse(path) if "://" in path else self._uri_of(path)
        except InvalidUri as problem:
            raise SkillError(
                f"`{visible(path)}` is not a file of a skill: it {problem.reason}"
            ) from None
        if uri.text == self.uri:
            return self.head
        inner = path_in(self.head.uri, uri)
        if inner is None:
            raise SkillError(f"`{visible(path)}` is outside the skill `{self.name}`")
        if self.files is None:
            return SkillResource(uri, uri.text)
        known = self.files.get(inner)
        if known is None:
            paths = first_of([visible(path) for path in self.files], 10)
            msg = f"the skill `{self.name}` has no file `{visible(inner)}`"
            raise SkillError(msg, hint=f"its files are {paths}")
        return known

    def _uri_of(self, path: str) -> Uri:
        names = path.removeprefix("./").split("/")
        return Uri.of(self.head.uri.scheme, (*self.head.uri.segments[:-1], *names))


def model_in(value: JsonValue) -> str | None:
    """Read the field `model` of a skill.

    Returns:
        The model; None where it is the agent's own. Settings behind `?` may name files and
        addresses, so a model that has some is not taken.
    """
    if not isinstance(value, str) or "?" in value or value.strip() in {"", "inherit"}:
        return None
    return value.strip()


def read_entry(value: JsonValue) -> SkillEntry:
    """Check an entry of `skills/list` or the answer of `skills/get`.

    Args:
        value: As the server sent it.

    Raises:
        SkillError: It is not what the extension allows; says why.
    """
    if not isinstance(value, Mapping):
        _refuse("it is not an object")
    head = _head(value.get("uri"))
    frontmatter = value.get("frontmatter")
    if not isinstance(frontmatter, Mapping):
        _refuse("`frontmatter` is not an object")
    name, description = frontmatter.get("name"), frontmatter.get("description")
    if not isinstance(name, str) or not is_name(name):
        _refuse("its frontmatter has no `name` that is one")
    if not isinstance(description, str) or not description.strip():
        _refuse("its frontmatter has no `description`")
    if head.uri.segments[-2] != name:
        _refuse(f"its URI does not end with its name `{name}`")
    resources = value.get("resources")
    if resources == DYNAMIC:
        return SkillEntry(head, name, description, frontmatter, None)
    if isinstance(resources, str) or not isinstance(resources, Sequence):
        _refuse("`resources` is neither a list nor `dynamic`")
    files = _files(head, [_resource(one) for one in resources])
    return SkillEntry(files[HEAD], name, description, frontmatter, files)


def read_manifest(value: JsonValue, head: SkillResource) -> Mapping[str, SkillResource]:
    """Check the inventory `_manifest` of a server that does not know the extension.

    Args:
        value: As the server sent it, decoded.
        head: The skill's `SKILL.md`.

    Returns:
        The files by path.

    Raises:
        SkillError: It is not such an inventory.
    """
    listed = value.get("files") if isinstance(value, Mapping) else None
    if isinstance(listed, str) or not isinstance(listed, Sequence):
        _refuse("its `_manifest` has no list `files`")
    above = head.uri.segments[:-1]
    found: list[SkillResource] = []
    for one in listed:
        path = one.get("path") if isinstance(one, Mapping) else None
        if not isinstance(one, Mapping) or not isinstance(path, str):
            _refuse("a file of its `_manifest` has no `path`")
        try:
            uri = Uri.of(head.uri.scheme, (*above, *path.split("/")))
        except InvalidUri as problem:
            _refuse(f"a file of its `_manifest` {problem.reason}")
        sent = head.sent if uri == head.uri else uri.text
        found.append(_measured(uri, sent, one.get("hash"), one.get("size")))
    return _files(head, found)


def path_in(head: Uri, uri: Uri) -> str | None:
    """Return the path of a URI inside the skill of a `SKILL.md`; None if it is outside."""
    above = head.segments[:-1]
    inside = uri.segments[: len(above)] == above and len(uri.segments) > len(above)
    return "/".join(uri.segments[len(above) :]) if inside and uri.scheme == head.scheme else None


def head_uri(text: str) -> Uri:
    """Read the URI of a `SKILL.md`.

    Raises:
        SkillError: It is no URI, a `file:` URI, or the URI of something else.
    """
    try:
        uri = Uri.parse(text)
    except InvalidUri as problem:
        _refuse(f"its URI {problem.reason}")
    if uri.scheme == "file":
        _refuse("its URI is one of a file")
    if uri.segments[-1] != HEAD or len(uri.segments) < 2:
        _refuse(f"its URI does not end with a name and `{HEAD}`")
    return uri


def _head(value: JsonValue) -> SkillResource:
    if not isinstance(value, str):
        _refuse("it has no `uri`")
    return SkillResource(head_uri(value), value)


def _resource(value: JsonValue) -> SkillResource:
    sent = value.get("uri") if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or not isinstance(sent, str):
        _refuse("a file of `resources` has no `uri`")
    try:
        uri = Uri.parse(sent)
    except InvalidUri as problem:
        _refuse(f"the URI of a file {problem.reason}")
    return _measured(uri, sent, value.get("digest"), value.get("size"))


def _measured(uri: Uri, sent: str, digest: JsonValue, size: JsonValue) -> SkillResource:
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        _refuse(f"the digest of `{visible(uri.text)}` is not `sha256:` and 64 small hex digits")
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        _refuse(f"the size of `{visible(uri.text)}` is not a number of bytes")
    return SkillResource(uri, sent, digest, size)


def _files(head: SkillResource, found: Sequence[SkillResource]) -> dict[str, SkillResource]:
    """Check an inventory as a whole."""
    if len(found) > MAX_FILES:
        _refuse(f"it has {len(found):,} files; {MAX_FILES} are allowed")
    files: dict[str, SkillResource] = {}
    for one in found:
        path = path_in(head.uri, one.uri)
        if path is None:
            _refuse(f"`{visible(one.uri.text)}` is outside the skill")
        if path in files:
            _refuse(f"`{visible(path)}` is listed twice")
        files[path] = one
    if HEAD not in files:
        _refuse(f"its `{HEAD}` is not among its files")
    size = sum(one.size or 0 for one in found)
    if size > MAX_BYTES:
        _refuse(f"its files have {size:,} bytes; {MAX_BYTES:,} are allowed")
    return files


def _refuse(why: str) -> NoReturn:
    raise SkillError(why)
