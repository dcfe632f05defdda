"""The methods of the skills extension: `skills/list`, `skills/get`, `resources/directory/read`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.resources.catalog import page
from fast_agent.resources.problem import (
    AmbiguousName,
    InvalidUri,
    NotFound,
    RequestRefused,
    bad_params,
    shown,
)
from fast_agent.resources.provider import Addition, Answer, ServedTool, ToolAnswer
from fast_agent.resources.resource import FOLDER_TYPE, Resource, media_type
from fast_agent.resources.skill.files import HEAD
from fast_agent.resources.skill.listing import escaped, one_line
from fast_agent.resources.skill.set import MANIFEST
from fast_agent.resources.uri import Uri
from fast_agent.rpc.message import INVALID_PARAMS
from fast_agent.text.wording import closest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fast_agent.resources.resource import ResourceContent
    from fast_agent.resources.session import Session
    from fast_agent.resources.skill.provider import SkillProvider
    from fast_agent.resources.skill.set import Skill, SkillSet
    from fast_agent.text.json_value import JsonObject, JsonValue

EXTENSION = "io.modelcontextprotocol/skills"
_LIST = "skills/list"
_GET = "skills/get"
_DIRECTORY = "resources/directory/read"
_INSTRUCTIONS = (
    "This server has skills: instructions for kinds of tasks. When a task fits a skill's"
    " description, load the skill with the tool `load_skill`, or read `skill://NAME/SKILL.md`,"
    " and follow it."
)


LOAD = "load_skill"
READ = "read_skill_file"
_CATALOG_CHARACTERS = 24_000
_LINE_CHARACTERS = 300
_MAX_FILES = 100
_READ_ONLY: JsonObject = {
    "readOnlyHint": True,
    "destructiveHint": False,
    "idempotentHint": True,
    "openWorldHint": False,
}
_ABOUT_LOAD = (
    "Load a skill: instructions for a kind of task. When a task fits the description of a skill,"
    " load it before you start, and follow it."
)
_ABOUT_READ = (
    "Read a file that belongs to a skill, such as one its instructions refer to. The path is"
    " relative to the skill."
)


def skill_addition(provider: SkillProvider) -> Addition:
    """Return what a server with skills offers in addition to their resources.

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
                yield Resource(skill.file_uri(folder), folder[start:], mime_type=FOLDER_TYPE)
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
    raise bad_params("`uri` is missing or not a string")


def _unknown(uri: Uri, message: str, close: Sequence[str]) -> RequestRefused:
    """Refuse a URI; this extension has one code for it in all versions of the protocol."""
    hint = f"; close to it: {', '.join(f'`{shown(one)}`' for one in close[:10])}" if close else ""
    data: JsonObject = {"uri": shown(uri.text)}
    if close:
        data = {**data, "suggestions": list(close[:10])}
    return RequestRefused(INVALID_PARAMS, f"{message} `{shown(uri.text)}`{hint}", data)


class SkillTools:
    """The tools over the skills of a provider.

    Args:
        provider: The skills.
    """

    def __init__(self, provider: SkillProvider) -> None:
        self._provider = provider
        self._made: tuple[SkillSet, tuple[ServedTool, ...]] | None = None

    def now(self) -> tuple[ServedTool, ...]:
        """The tools, with the names there are now."""
        self._provider.revision  # noqa: B018  (checks the disk if that is due)
        skills = self._provider.skills
        if self._made is None or self._made[0] is not skills:
            self._made = skills, tuple(self._tools(skills))
        return self._made[1]

    def load(self, arguments: JsonObject) -> ToolAnswer:
        """Answer `load_skill`: all of `SKILL.md`, then the names of the skill's other files."""
        name = arguments.get("name")
        if not isinstance(name, str):
            return ToolAnswer.of_text("`name` is missing or not text", is_error=True)
        skill = find(self._provider, name)
        (content,) = self._provider.read(skill.head_uri)
        blocks = [_block(content)]
        if len(skill.files) > 1:
            blocks.append({"type": "text", "text": _files(skill)})
        return ToolAnswer(tuple(blocks))

    def read(self, arguments: JsonObject) -> ToolAnswer:
        """Answer `read_skill_file`: text as text, anything else as an embedded resource."""
        name, path = arguments.get("name"), arguments.get("path")
        if not isinstance(name, str) or not isinstance(path, str):
            return ToolAnswer.of_text("`name` or `path` is missing or not text", is_error=True)
        skill = find(self._provider, name)
        uri = Uri.parse(path) if path.startswith("skill://") else _uri_in(skill, path)
        (content,) = self._provider.read(uri)
        return ToolAnswer((_block(content),))

    def _tools(self, skills: SkillSet) -> Iterator[ServedTool]:
        name: dict[str, JsonValue] = {
            "type": "string",
            "description": "The skill's name, path or URI.",
        }
        about_load = _ABOUT_LOAD
        if self._provider.options.embed_catalog and skills.skills:
            choices = _choices(skills)
            name["enum"] = choices
            about_load += f"\n\n{_catalog(skills, choices)}"
        elif not skills.skills:
            about_load += "\n\nThere are no skills at the moment."
        yield ServedTool(LOAD, about_load, _schema(name=name), self.load, "Load skill", _READ_ONLY)
        path: JsonObject = {
            "type": "string",
            "description": f"Such as `references/guide.md`; `{MANIFEST}` lists all files.",
        }
        schema = _schema(name={key: one for key, one in name.items() if key != "enum"}, path=path)
        yield ServedTool(READ, _ABOUT_READ, schema, self.read, "Read file of a skill", _READ_ONLY)


def find(provider: SkillProvider, text: str) -> Skill:
    """Find the skill that a model named.

    Args:
        provider: The skills.
        text: A name, a path, or a URI of the skill or of its `SKILL.md`.

    Raises:
        Ambiguous: Several skills have this name.
        NotFound: None has it.
    """
    for _ in range(2):
        skills = provider.skills
        if text.startswith("skill://"):
            uri = Uri.parse(text)
            owner = provider.owner(uri)
            if owner is not None and owner[1] in {"", HEAD}:
                return owner[0]
        same = skills.by_name.get(text, ())
        if len(same) == 1:
            return same[0]
        if same:
            raise AmbiguousName(text, sorted(one.head_uri.text for one in same))
        if text in skills.by_path:
            return skills.by_path[text]
        if not provider.scan():
            break
    near = closest(text, [*provider.skills.by_name, *provider.skills.by_path])
    raise NotFound(text, (near,) if near else tuple(provider.skills.by_name)[:10], what="skill")


def _uri_in(skill: Skill, path: str) -> Uri:
    try:
        return skill.uri.child(*path.removeprefix("./").split("/"))
    except InvalidUri as error:
        raise NotFound(path, what=f"file (its path {error.reason})") from None


def _block(content: ResourceContent) -> JsonObject:
    if content.text is not None:
        return {"type": "text", "text": content.text}
    return {"type": "resource", "resource": content.data}


def _files(skill: Skill) -> str:
    """Name a loaded skill's other files."""
    paths = [path for path in skill.files if path != HEAD]
    lines = [f"  <file>{escaped(path)}</file>\n" for path in paths[:_MAX_FILES]]
    if len(paths) > _MAX_FILES:
        lines.append(f"  <!-- and {len(paths) - _MAX_FILES} more: read `{MANIFEST}` -->\n")
    uri = escaped(skill.uri.text)
    return f'<skill_resources uri="{uri}">\n{"".join(lines)}</skill_resources>'


def _choices(skills: SkillSet) -> list[str]:
    """What may name each skill: its name, or if others share it, its path or URI."""
    found: list[str] = []
    for skill in skills.skills:
        if len(skills.by_name[skill.name]) == 1:
            found.append(skill.name)
        else:
            found.append(skill.head_uri.text if skill.path in skills.by_name else skill.path)
    return found


def _catalog(skills: SkillSet, choices: list[str]) -> str:
    """Name every skill, with its description where there is room for all of them."""
    room = sum(min(len(skill.description), _LINE_CHARACTERS) for skill in skills.skills)
    if room + sum(map(len, choices)) > _CATALOG_CHARACTERS:
        return f"Skills: {one_line(', '.join(choices))}"
    lines = [
        f"- {one_line(choice)}: {one_line(skill.description, _LINE_CHARACTERS)}"
        for choice, skill in zip(choices, skills.skills, strict=True)
    ]
    return "Skills:\n" + escaped_lines(lines)


def escaped_lines(lines: list[str]) -> str:
    """Join lines whose text must not read as markup."""
    return "\n".join(line.replace("<", "&lt;").replace(">", "&gt;") for line in lines)


def _schema(**properties: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
