"""The methods of the skills extension: `skills/list`, `skills/get`, `resources/directory/read`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.resources.answer import Answer
from fast_agent.resources.media_type import FOLDER, media_type
from fast_agent.resources.paging import page
from fast_agent.resources.problem import RequestRefused, bad_params, shown
from fast_agent.resources.provider import Addition
from fast_agent.resources.resource import Resource
from fast_agent.resources.skill.files import HEAD
from fast_agent.resources.skill.tools import SkillTools
from fast_agent.resources.uri import Uri
from fast_agent.rpc.message import INVALID_PARAMS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fast_agent.resources.session import Session
    from fast_agent.resources.skill.provider import SkillProvider
    from fast_agent.resources.skill.set import Skill
    from fast_agent.text.json_value import JsonObject

EXTENSION = "io.modelcontextprotocol/skills"
_LIST = "skills/list"
_GET = "skills/get"
_DIRECTORY = "resources/directory/read"
_INSTRUCTIONS = (
    "This server has skills: instructions for kinds of tasks. When a task fits a skill's"
    " description, load the skill with the tool `load_skill`, or read `skill://NAME/SKILL.md`,"
    " and follow it."
)


def skill_addition(provider: SkillProvider) -> Addition:
    """Give what a server with skills has beside their resources.

    Args:
        provider: The skills; its options say whether there are tools.
    """
    methods = SkillMethods(provider)
    tools = SkillTools(provider)
    table = {_LIST: methods.list, _GET: methods.get, _DIRECTORY: methods.directory}
    declared = {EXTENSION: {"directoryRead": True}}
    if not provider.options.load_skill:
        return Addition(table, declared)
    return Addition(table, declared, tools.now, _INSTRUCTIONS)


class SkillMethods:
    """Answers the extension's methods.

    Args:
        provider: The skills.
    """

    def __init__(self, provider: SkillProvider) -> None:
        self._provider = provider

    def list(self, session: Session, params: JsonObject) -> Answer:  # noqa: ARG002
        """Answer `skills/list`: entries with all files and hashes, none split between pages."""
        provider = self._provider
        skills = [skill for skill in provider.fresh() if skill.listed]
        keys = [skill.head_uri.text for skill in skills]
        cursor = params.get("cursor")
        limits = provider.limits.core
        start = page(_LIST, keys, cursor, limits.page).start
        entries: list[bytes] = []
        considered = room = 0
        for skill in skills[start : start + limits.page]:
            if (snapshot := provider.snapshot_or_none(skill)) is not None:
                room += len(snapshot.entry)
                if entries and room > limits.answer_bytes:
                    break
                entries.append(snapshot.entry)
            considered += 1
        found = page(_LIST, keys, cursor, considered) if considered else None
        return Answer.of_list("skills", entries, found.cursor if found else None)

    def get(self, session: Session, params: JsonObject) -> Answer:  # noqa: ARG002
        """Answer `skills/get`: the entry of one skill, whether it is listed or not."""
        uri = _uri(params, _GET)
        found = self._provider.owner(uri)
        if found is not None and found[1] == HEAD and found[0].has_entry:
            snapshot = self._provider.snapshot_or_none(found[0])
            if snapshot is not None:
                return Answer(json=b'{"skill":' + snapshot.entry + b"}", cacheable=True)
        raise _unknown(uri, "no skill is served at", self._provider.close_to(uri))

    def directory(self, session: Session, params: JsonObject) -> Answer:  # noqa: ARG002
        """Answer `resources/directory/read`: what is directly inside a folder of a skill."""
        uri = _uri(params, _DIRECTORY)
        found = self._provider.owner(uri)
        if found is None or (found[1] and found[1] not in found[0].contents.folders):
            raise _unknown(uri, "no directory is served at", self._provider.close_to(uri))
        children = sorted(self._children(*found), key=lambda one: one.uri.text)
        keys = [one.uri.text for one in children]
        kind = f"{_DIRECTORY} {uri}"
        part = page(kind, keys, params.get("cursor"), self._provider.limits.core.page)
        entries = [one.json for one in children[part.start : part.end]]
        return Answer.of_list("resources", entries, part.cursor)

    def _children(self, skill: Skill, path: str) -> Iterator[Resource]:
        start = len(path) + 1 if path else 0
        prefix = f"{path}/" if path else ""
        for folder in skill.contents.folders:
            if folder.startswith(prefix) and "/" not in folder[start:]:
                yield Resource(skill.file_uri(folder), folder[start:], mime_type=FOLDER)
        for file in skill.files:
            if file.startswith(prefix) and "/" not in file[start:]:
                size = self._provider.size_of(skill, file)
                if size is not None:
                    yield self._file(skill, file, file[start:], size)

    def _file(self, skill: Skill, path: str, name: str, size: int) -> Resource:
        uri = skill.file_uri(path)
        owner = self._provider.skills.owner(uri)
        if owner is not None and owner[1] == HEAD:
            known = owner[0]
            return Resource(uri, known.name, None, known.description, media_type(path), size)
        return Resource(uri, name, None, None, media_type(path), size)


def _uri(params: JsonObject, method: str) -> Uri:
    text = params.get("uri")
    if isinstance(text, str):
        return Uri.parse(text)
    if method == _GET and "name" in params:
        raise bad_params("skills are known by `uri`, not by `name`; `skills/list` has their URIs")
    raise bad_params("`uri` is missing or no string")


def _unknown(uri: Uri, message: str, close: Sequence[str]) -> RequestRefused:
    """Refuse a URI; this extension has one code for it in all versions of the protocol."""
    hint = f"; close to it: {', '.join(f'`{shown(one)}`' for one in close[:10])}" if close else ""
    data: JsonObject = {"uri": shown(uri.text)}
    if close:
        data = {**data, "suggestions": list(close[:10])}
    return RequestRefused(INVALID_PARAMS, f"{message} `{shown(uri.text)}`{hint}", data)
