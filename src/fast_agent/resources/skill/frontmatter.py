"""The head of a `SKILL.md`: its frontmatter, read strictly, and what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from fast_agent.rpc.message import NOTHING
from fast_agent.text.wording import closest, did_you_mean

if TYPE_CHECKING:
    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.diagnostics.rules import Rule
    from fast_agent.schema.kinds import Effects
    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.text.safe_file import FileStamp
    from fast_agent.text.source import Source
    from fast_agent.text.span import Span
    from fast_agent.text.yaml_document import YamlDocument

SKILL_FIELDS: Final[Mapping[str, Effects]] = MappingProxyType(
    {
        "name": (),
        "description": (),
        "license": (),
        "compatibility": (),
        "metadata": (),
        # It names tools, but does not grant them to the skill.
        "allowed-tools": (),
    }
)
"""What each field can make a found skill do; a field that is missing here is unknown."""

HOST_FIELDS: Final = frozenset(
    {"disable-model-invocation", "user-invocable", "argument-hint", "model", "context"}
)
"""Fields of programs that use skills, obeyed of skills of this machine."""

KNOWN_SKILL_FIELDS: Final = frozenset((*SKILL_FIELDS, *HOST_FIELDS))
"""Fields a found skill may have; some of them have an effect once they are approved."""


MAX_NAME = 64
MAX_DESCRIPTION = 1024
MAX_COMPATIBILITY = 500
FIELDS = tuple(SKILL_FIELDS)

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_LOOSE = re.compile(r"([A-Za-z][\w-]*:[ \t]+)([^\s\"'|>\[{&*!#%@`].*)")
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
_KNOWN = KNOWN_SKILL_FIELDS


class SkillHead(NamedTuple):
    """What a `SKILL.md` says of its skill.

    Args:
        stamp: The state of the file it was read from; None where that cannot be trusted to change
            with the next edit, so that it is read again.
        frontmatter: Every field the author wrote, as JSON; None where it could not be read.
        name: The `name`, if it is a string.
        description: The `description`, if it is a string that is not blank.
        valid: Whether nothing breaks the Agent Skills specification.
        problems: What is wrong, in file order; warnings too.
        size: Bytes of the whole file.
        name_line: The line that `name` is on, or None where that was not found quickly.
    """

    stamp: FileStamp | None
    frontmatter: JsonObject | None = None
    name: str | None = None
    description: str | None = None
    valid: bool = False
    problems: tuple[Diagnostic, ...] = ()
    size: int = 0
    name_line: int | None = None


def is_name(text: str) -> bool:
    """Return whether a string is a skill name: small letters, digits and single hyphens inside."""
    return len(text) <= MAX_NAME and _NAME.fullmatch(text) is not None


def as_name(text: str) -> str:
    """Make a name of any text; empty where nothing of it can be in one."""
    return _NOT_IN_NAMES.sub("-", text.lower()).strip("-")[:MAX_NAME].rstrip("-")


def read_head(data: bytes, shown: str, stamp: FileStamp | None) -> SkillHead:
    """Read the head of a `SKILL.md`.

    Args:
        data: The file's bytes.
        shown: The path that diagnostics name.
        stamp: As for `SkillHead`.
    """
    fields = plain_fields(data)
    if fields is None or not _is_plainly_valid(fields):
        return read_thoroughly(data, shown, stamp)
    line = data.count(b"\n", 0, data.index(b"\nname:")) + 2
    name, description = fields["name"], fields["description"]
    return SkillHead(
        stamp, fields, cast("str", name), cast("str", description), True, (), len(data), line
    )


def read_thoroughly(data: bytes, shown: str, stamp: FileStamp | None) -> SkillHead:
    """Read a head with every problem in its place; arguments are those of `read_head`."""
    from fast_agent.text.source import Source, SourceError, decode

    try:
        source = Source(shown, decode(data))
        document, loose = _document(source)
    except _RefusedError as refusal:
        return SkillHead(stamp, problems=refusal.problems, size=len(data))
    except SourceError as error:
        problem = unreadable_skill(shown, error.message, error.span, error.hint, error.line)
        return SkillHead(stamp, problems=(problem,), size=len(data))
    fields = document.value
    if not isinstance(fields, Mapping):
        message = (
            "the frontmatter is not a mapping of fields" if fields else "the frontmatter is empty"
        )
        hint = "write `name: …` and `description: …` between the `---` lines"
        problem = unreadable_skill(shown, message, document.span_of(()), hint, source.line(2))
        return SkillHead(stamp, problems=(problem,), size=len(data))
    problems = () if _is_plainly_valid(fields) else _problems(source, document, fields)
    problems = (*loose, *problems)
    name, description = fields.get("name"), fields.get("description")
    return SkillHead(
        stamp,
        fields,
        name if isinstance(name, str) and name else None,
        description if isinstance(description, str) and description.strip() else None,
        not any(problem.severity == "error" for problem in problems),
        problems,
        len(data),
        _name_line(document),
    )


def unreadable_skill(
    path: str, message: str, span: Span | None, hint: str | None, line: str | None
) -> Diagnostic:
    """Report a `SKILL.md` that cannot be read."""
    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.diagnostics.rules import SKILL_FILE

    return Diagnostic(SKILL_FILE, message, path, span, hint=hint, source_line=line)


class _RefusedError(ValueError):
    """The frontmatter cannot be read at all."""

    def __init__(self, problems: tuple[Diagnostic, ...]) -> None:
        super().__init__(problems[0].message)
        self.problems = problems


def _document(source: Source) -> tuple[YamlDocument, tuple[Diagnostic, ...]]:
    """Find and parse the frontmatter; lines that are not YAML are read as text, with a warning."""
    from fast_agent.text.frontmatter import FrontmatterError, split_frontmatter
    from fast_agent.text.yaml_document import YamlError, parse_yaml

    try:
        found = split_frontmatter(source)
        if found is not None:
            try:
                return parse_yaml(found.text, first_line=found.first_line), ()
            except YamlError:
                text, lines = quoted_values(found.text)
                if not lines:
                    raise
                document = parse_yaml(text, first_line=found.first_line)
                return document, tuple([_loose(source, found.first_line + at) for at in lines])
    except FrontmatterError as error:
        message = error.message
        if error.reason == "toml":
            message = "frontmatter between `+++` lines is TOML; a skill's is YAML"
        line = source.line(error.span.start.line)
        raise _RefusedError(
            (unreadable_skill(source.path, message, error.span, error.hint, line),)
        ) from None
    except YamlError as error:
        from fast_agent.diagnostics.diagnostic import Diagnostic
        from fast_agent.diagnostics.rules import SKILL_YAML

        raise _RefusedError(
            tuple(
                Diagnostic(
                    SKILL_YAML,
                    one.message,
                    source.path,
                    one.span,
                    hint=one.hint,
                    source_line=source.line(one.span.start.line),
                )
                for one in error.problems
            )
        ) from None
    from fast_agent.text.span import Span

    raise _RefusedError(
        (
            unreadable_skill(
                source.path,
                "the file does not start with frontmatter",
                Span.at(1, 1),
                "start it with a line `---`, the fields `name` and `description`, and `---` again",
                source.line(1),
            ),
        )
    )


def quoted_values(text: str) -> tuple[str, list[int]]:
    """Quote values that contain `: `, as many people write descriptions.

    Args:
        text: The frontmatter.

    Returns:
        The text, and the lines that changed, from 0.
    """
    lines, changed = text.split("\n"), list[int]()
    for number, line in enumerate(lines):
        found = _LOOSE.fullmatch(line)
        if found is None or not _is_known(found[1]):
            continue
        if ": " in found[2] or found[2].rstrip().endswith(":"):
            lines[number] = f"{found[1]}{_quoted(found[2])}"
            changed.append(number)
    return "\n".join(lines), changed


def _is_known(key: str) -> bool:
    return key.partition(":")[0] in KNOWN_SKILL_FIELDS


def _quoted(value: str) -> str:
    return "'" + value.strip().replace("'", "''") + "'"


def _loose(source: Source, line: int) -> Diagnostic:
    """Report a value that is read although it is not YAML."""
    from fast_agent.diagnostics.diagnostic import Diagnostic, Fix
    from fast_agent.diagnostics.rules import SKILL_LOOSE_VALUE
    from fast_agent.text.span import Position, Span

    text = source.line(line) or ""
    found = _LOOSE.fullmatch(text)
    key, value = (found[1], found[2]) if found else ("", text)
    span = Span(Position(line, len(key) + 1), Position(line, len(text) + 1))
    message = f"`{key.strip(': ')}` holds `: ` without quotes; it is read as text"
    hint = "put it in quotes: other programs leave the skill out"
    fix = Fix(span, _quoted(value))
    severity = SKILL_LOOSE_VALUE.severity
    return Diagnostic(
        SKILL_LOOSE_VALUE, message, source.path, span, severity, hint, fix, source_line=text
    )


def _name_line(document: YamlDocument) -> int | None:
    at = f"\n{document.text}".find("\nname:")
    return None if at < 0 else document.first_line + document.text.count("\n", 0, at)


def _is_plainly_valid(fields: Mapping[str, JsonValue]) -> bool:
    """Whether there is nothing to say: the quick way for the many skills that are right."""
    name, description = fields.get("name"), fields.get("description")
    if not (isinstance(name, str) and is_name(name) and isinstance(description, str)):
        return False
    if not (description and len(description) <= MAX_DESCRIPTION and not description.isspace()):
        return False
    if len(fields) == 2:
        return True
    compatibility = fields.get("compatibility", "any")
    metadata = fields.get("metadata")
    return (
        _KNOWN.issuperset(fields)
        and isinstance(fields.get("license", ""), str)
        and isinstance(fields.get("allowed-tools", ""), str)
        and isinstance(compatibility, str)
        and 0 < len(compatibility) <= MAX_COMPATIBILITY
        and ("metadata" not in fields or _is_text_map(metadata))
    )


def _is_text_map(value: JsonValue) -> bool:
    return isinstance(value, Mapping) and all(isinstance(one, str) for one in value.values())


def _problems(
    source: Source, document: YamlDocument, fields: Mapping[str, JsonValue]
) -> tuple[Diagnostic, ...]:
    """Find everything that is wrong with the fields, with places."""
    from fast_agent.diagnostics.diagnostic import Diagnostic, Fix
    from fast_agent.diagnostics.rules import (
        SKILL_DESCRIPTION,
        SKILL_FIELD,
        SKILL_LOOSE_VALUE,
        SKILL_NAME,
        SKILL_UNKNOWN_FIELD,
    )

    found: list[Diagnostic] = []

    def note(
        code: Rule, message: str, path: tuple[str, ...], hint: str, replacement: str | None = None
    ) -> None:
        span = document.span_of(path, key=code == SKILL_UNKNOWN_FIELD)
        fix = Fix(span, replacement) if replacement else None
        line = source.line(span.start.line)
        found.append(
            Diagnostic(code, message, source.path, span, code.severity, hint, fix, (), line)
        )

    for problem in _name_problems(fields):
        note(SKILL_NAME, *problem)
    for message, path, hint in _description_problems(fields):
        note(SKILL_DESCRIPTION, message, path, hint)
    for message, path, hint in _field_problems(fields):
        note(SKILL_FIELD, message, path, hint)
    for message, path, hint in _loose_values(fields):
        note(SKILL_LOOSE_VALUE, message, path, hint)
    for key in fields:
        if key not in _KNOWN:
            near = closest(key, FIELDS)
            hint = did_you_mean(near, "put further facts under `metadata`")
            note(SKILL_UNKNOWN_FIELD, f"`{key}` is not a field of a skill", (key,), hint, near)
    return tuple(found)


def _name_problems(
    fields: Mapping[str, JsonValue],
) -> list[tuple[str, tuple[str, ...], str, str | None]]:
    if "name" not in fields:
        return [("there is no `name`", (), "write the name of the skill's folder", None)]
    name = fields["name"]
    if not isinstance(name, str):
        hint = "put it in quotes if it is meant as text"
        return [("`name` is not a string", ("name",), hint, None)]
    if is_name(name):
        return []
    better = as_name(name)
    if len(name) > MAX_NAME:
        message = f"`name` has {len(name)} characters; {MAX_NAME} are allowed"
    elif not name.strip():
        message = "`name` is empty"
    else:
        message = f"`{name}` is not a skill name: small letters a-z, digits, single hyphens between"
    return [(message, ("name",), f"write `{better}`" if better else "write a name", better or None)]


def _description_problems(
    fields: Mapping[str, JsonValue],
) -> list[tuple[str, tuple[str, ...], str]]:
    hint = "say what the skill does and when to use it"
    if "description" not in fields:
        return [("there is no `description`", (), hint)]
    description = fields["description"]
    if not isinstance(description, str):
        return [("`description` is not a string", ("description",), hint)]
    if not description.strip():
        return [("`description` is empty", ("description",), hint)]
    if len(description) > MAX_DESCRIPTION:
        count = f"{len(description):,} characters; {MAX_DESCRIPTION:,} are allowed"
        hint = "keep what says when to use the skill; move the rest below the frontmatter"
        return [(f"`description` has {count}", ("description",), hint)]
    return []


def _field_problems(fields: Mapping[str, JsonValue]) -> list[tuple[str, tuple[str, ...], str]]:
    found: list[tuple[str, tuple[str, ...], str]] = []
    quotes = "put it in quotes if it is meant as text"
    if not isinstance(fields.get("license", ""), str):
        found.append(("`license` is not a string", ("license",), quotes))
    compatibility = fields.get("compatibility", "any")
    if not isinstance(compatibility, str):
        found.append(("`compatibility` is not a string", ("compatibility",), quotes))
    elif not 0 < len(compatibility) <= MAX_COMPATIBILITY:
        message = f"`compatibility` has {len(compatibility)} characters; 1 to 500 are allowed"
        found.append((message, ("compatibility",), "name only what the skill needs to run"))
    tools = fields.get("allowed-tools", "")
    if not isinstance(tools, str) and not _is_text_list(tools):
        hint = "write tool names with spaces between"
        found.append(("`allowed-tools` is not a string", ("allowed-tools",), hint))
    metadata = fields.get("metadata", NOTHING)
    if not isinstance(metadata, Mapping):
        found.append(
            ("`metadata` is not a mapping", ("metadata",), "write `key: value` lines in it")
        )
        return found
    for key, value in metadata.items():
        if value is None or (isinstance(value, Mapping | Sequence) and not isinstance(value, str)):
            message = f"`metadata.{key}` is not a string"
            found.append((message, ("metadata", key), "use one string for every key"))
    return found


def _loose_values(fields: Mapping[str, JsonValue]) -> list[tuple[str, tuple[str, ...], str]]:
    """Values that other programs read as another type than text."""
    found: list[tuple[str, tuple[str, ...], str]] = []
    if _is_text_list(fields.get("allowed-tools", "")):
        message = "`allowed-tools` is a list; the specification has one string"
        hint = "write the names on one line with spaces between"
        found.append((message, ("allowed-tools",), hint))
    metadata = fields.get("metadata")
    if isinstance(metadata, Mapping):
        for key, value in metadata.items():
            if isinstance(value, bool | int | float):
                message = f"`metadata.{key}` is a {_kind(value)} to most programs, not a string"
                found.append((message, ("metadata", key), "put it in quotes"))
    return found


def _is_text_list(value: JsonValue) -> bool:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return False
    return all(isinstance(one, str) for one in value)


def _kind(value: float) -> str:
    return "truth value" if isinstance(value, bool) else "number"


# Plain text that starts with a letter and has neither `:` nor `#`, or quotes without escapes.
_VALUE = r"""(?:[A-Za-z](?:[ !"$-9;-~]*[!"$-9;-~])?|"[ !#-\[\]-~]*"|'[ -&(-~]*')"""
_INNER = rf"(?:[ ][ ][A-Za-z][A-Za-z0-9_-]*+:[ ]{_VALUE}\n)++"
_PLAIN = re.compile(rf"(?:[a-z][a-z-]*+:[ ]{_VALUE}\n|metadata:\n{_INNER})*+")
_NO_TEXT = frozenset({"null", "true", "false"})
_FENCE = b"---\n"


def plain_fields(data: bytes) -> dict[str, JsonValue] | None:
    """Read the frontmatter of a file where it is plain.

    Args:
        data: The whole file.

    Returns:
        The fields as the full parser returns them; None if it has to be asked.
    """
    end = data.find(b"\n---\n", 3)
    if end < 0 or not data.startswith(_FENCE) or b"\0" in data:
        return None
    head = data[len(_FENCE) : end + 1]
    if not head.isascii():
        return None
    try:
        data.decode()
    except UnicodeDecodeError:
        return None
    text = head.decode("ascii")
    return None if _PLAIN.fullmatch(text) is None else _fields(text)


def _fields(text: str) -> dict[str, JsonValue] | None:
    fields: dict[str, JsonValue] = {}
    inner: dict[str, JsonValue] = {}
    lines = text.split("\n")
    for line in lines[:-1]:
        key, _, value = line.partition(": ")
        if not value:
            key, into = key[:-1], fields
            fields[key] = inner
            continue
        into = fields
        if line[0] == " ":
            key, into = key[2:], inner
        if value[0] in "\"'":
            value = value[1:-1]
        elif value.lower() in _NO_TEXT:
            return None
        if key in into or key.lower() in _NO_TEXT:
            return None
        into[key] = value
    return fields if 0 < len(lines) - 1 == len(fields) + len(inner) else None
