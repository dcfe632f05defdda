"""Validation: one card's document becomes a `Card`, with everything that is wrong in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from fast_agent.cards.agent_config import AgentConfig, McpConnect
from fast_agent.cards.card import Card
from fast_agent.cards.document import DiagnosticCollector
from fast_agent.cards.fields import (
    CARD_TYPES,
    FIELD_NAMED,
    FIELDS,
    FIELDS_OF,
    HIGHEST_SCHEMA_VERSION,
    HISTORY_MODES,
    PEER_FIELDS,
)
from fast_agent.cards.records import REQUEST_PARAMS, of_peer
from fast_agent.diagnostics import rules
from fast_agent.diagnostics.diagnostic import Fix
from fast_agent.schema.explanation import (
    INVALID,
    ExpandedText,
    Variable,
    clipped,
    listed,
    shown,
)
from fast_agent.schema.reader import reader
from fast_agent.text.environment import UnsetVariableError, VariableNames, expand, has_variable
from fast_agent.text.json_value import as_object
from fast_agent.text.span import Position, Span
from fast_agent.text.wording import closest, did_you_mean

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Iterator

    from fast_agent.cards.agent_config import CardType
    from fast_agent.cards.document import CardDocument
    from fast_agent.cards.fields import Field
    from fast_agent.cards.grant import CardGrant
    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.schema.reader import Read
    from fast_agent.text.json_value import JsonValue, Keys


class Origin(NamedTuple):
    """Where a card comes from.

    Args:
        name: Its name if it sets none; None if it always sets one.
        source: Its file, absolute; None for a remote card.
        remote: Its address; None for a local card.
        grant: What its found set may do; None for a card a user named.
    """

    name: str | None
    source: pathlib.Path | None = None
    remote: str | None = None
    grant: CardGrant | None = None


_READERS: dict[str, Read] = {
    name: reader(field.kind)
    for name, field in FIELD_NAMED.items()
    if name not in {"type", "name", "instruction", "schema_version"}
}
_READERS_OF: dict[CardType, dict[str, Read]] = {
    card_type: {name: _READERS[name] for name in FIELDS_OF[card_type] if name in _READERS}
    for card_type in CARD_TYPES
}
_REQUIRED_OF: dict[CardType, tuple[str, ...]] = {
    card_type: tuple(
        name
        for name, field in fields.items()
        if card_type in field.required and name != "instruction"
    )
    for card_type, fields in FIELDS_OF.items()
}
_OWN_CHECK = frozenset({"type", "name", "instruction", "schema_version"})
_PLACEHOLDER_INSTRUCTION = "You are a helpful agent."
_TEXT = reader(FIELD_NAMED["name"].kind)
_VERSION = FIELD_NAMED["schema_version"]
_VOTE = {name: FIELD_NAMED[name] for name in ("k", "max_samples")}


def validate_card(
    document: CardDocument, origin: Origin, environ: Mapping[str, str]
) -> tuple[Card, list[Diagnostic]]:
    """Check one card and compile it.

    Args:
        document: Its text; the value of its YAML is a mapping.
        origin: Where it comes from.
        environ: The variables for `${NAME}`; a remote card without a grant sees none. With
            `VariableNames` they stay in the card's text, and a field that cannot hold text is left
            out.

    Returns:
        The card, unsound where it has an error, and its diagnostics in file order.
    """
    findings = DiagnosticCollector(document)
    values = cast("dict[str, JsonValue]", document.yaml.value)
    if "${" in document.yaml.text and (origin.remote is None or origin.grant is not None):
        values = expand_fields(values, environ, findings)
        if isinstance(environ, VariableNames):
            values = _readable(values, findings)
    card_type = _type(values, findings)
    arguments = _read_fields(values, card_type, findings)
    arguments["name"] = _name(values, origin.name or "unnamed", findings)
    arguments["instruction"] = _instruction(values, card_type, findings)
    if "schema_version" in values:
        _check_schema_version(values["schema_version"], findings)
    if "history_mode" in arguments:
        _history_mode(arguments, findings)
    if card_type == "MAKER":
        _check_vote(arguments, findings)
    if origin.remote is not None:
        check_remote(arguments, findings)
    _check_required(arguments, values, card_type, findings)
    config = AgentConfig(
        type=card_type or "agent",
        source=origin.source,
        remote=origin.remote,
        grant=origin.grant,
        **arguments,
    )
    found = findings.diagnostics
    if len(found) > 1:
        found.sort(key=_place)
    return Card(
        config, document.source.path, document, findings.errors == 0 and not document.flawed
    ), found


def _readable(
    values: Mapping[str, JsonValue], findings: DiagnosticCollector
) -> dict[str, JsonValue]:
    """Leave out fields that can only be read once their variables have values."""
    kept: dict[str, JsonValue] = {}
    for name, value in values.items():
        read = _READERS.get(name)
        if _has_variable(value) and name != "instruction":
            scratch = DiagnosticCollector(findings.document)
            if read is None or read(value, (name,), scratch) is INVALID:
                findings.lose(name)
                continue
        kept[name] = value
    return kept


def _has_variable(value: JsonValue) -> bool:
    if isinstance(value, dict):
        return any(map(_has_variable, value.values()))
    if isinstance(value, list):
        return any(map(_has_variable, value))
    return isinstance(value, ExpandedText)


def _read_fields(
    values: Mapping[str, JsonValue], card_type: CardType | None, findings: DiagnosticCollector
) -> dict[str, Any]:
    readers = _READERS if card_type is None else _READERS_OF[card_type]
    arguments: dict[str, Any] = {}
    for name, value in values.items():
        read = readers.get(name)
        if read is None:
            if name not in _OWN_CHECK:
                _unknown_field(name, values, card_type, findings)
            continue
        if value is not None:
            one = read(value, (name,), findings)
            if one is not INVALID:
                arguments[name] = one
    if "mcp_connect" in arguments:
        arguments["mcp_connect"] = tuple(_connections(arguments["mcp_connect"]))
    return arguments


def _connections(
    servers: Mapping[str, str | McpConnect] | tuple[str | McpConnect, ...],
) -> Iterator[McpConnect]:
    """Yield the servers of a list, or of a mapping from their names."""
    if not isinstance(servers, Mapping):
        for server in servers:
            yield McpConnect(target=server) if isinstance(server, str) else server
        return
    for name, server in servers.items():
        made = McpConnect(target=server) if isinstance(server, str) else server
        yield made if made.name is not None else replace(made, name=name)


def _unknown_field(
    name: str,
    values: Mapping[str, JsonValue],
    card_type: CardType | None,
    findings: DiagnosticCollector,
) -> None:
    known = FIELD_NAMED if card_type is None else FIELDS_OF[card_type]
    shown_name = clipped(name)
    message = f"unknown field `{shown_name}`"
    if card_type is not None:
        message = f"`{card_type}` has no field `{shown_name}`"
    elsewhere = FIELD_NAMED.get(name)
    near = closest(name, known)
    parameter = closest(name, tuple(entry.name for entry in REQUEST_PARAMS.entries))
    replacement = None
    peer = PEER_FIELDS.get(name)
    if peer is not None:
        hint = of_peer(*peer)
    elif elsewhere is not None:
        types = listed(tuple(one for one in CARD_TYPES if one in elsewhere.types))
        hint = f"`{name}` is a field of {types}"
    elif near is not None:
        hint = f"did you mean `{near}`?"
        if near not in values:
            replacement = near
            findings.lose(near)  # so that the field is not reported as missing too
    elif parameter is not None and "request_params" in known:
        hint = f"write `{parameter}` inside `request_params`"
    else:
        command = "fast-agent schema" if card_type is None else f"fast-agent schema {card_type}"
        hint = f"`{command}` lists the fields"
    findings.add(
        rules.UNKNOWN_FIELD, message, (name,), key=True, hint=hint, replacement=replacement
    )


def _type(values: Mapping[str, JsonValue], findings: DiagnosticCollector) -> CardType | None:
    value = values.get("type")
    if value is None:
        misspelled = any(
            key not in FIELD_NAMED and closest(key, FIELD_NAMED) == "type" for key in values
        )
        return None if misspelled or findings.lost("type") else "agent"
    if type(value) is str and value in FIELDS_OF:
        return cast("CardType", value)
    if not isinstance(value, str):
        reader(FIELD_NAMED["type"].kind)(value, ("type",), findings)
        return None
    folded = _fold(value)
    for card_type in CARD_TYPES:
        if _fold(card_type) == folded:
            return card_type
    near = closest(value, CARD_TYPES)
    findings.add(
        rules.UNKNOWN_TYPE,
        f"there is no card type `{clipped(value)}`",
        ("type",),
        hint=did_you_mean(near, f"the types are {listed(CARD_TYPES)}"),
        replacement=near,
    )
    return None


def _fold(word: str) -> str:
    return word.lower().replace("-", "").replace("_", "")


def _name(values: Mapping[str, JsonValue], default: str, findings: DiagnosticCollector) -> str:
    value = values.get("name")
    document = findings.document
    if document.several:
        default = f"{default}-{document.start().start.line}"
        if value is None and not findings.lost("name"):
            message = "a card in a file with several needs a `name`"
            findings.put(rules.MISSING_FIELD, message, document.start(), hint="add `name: …`")
    if value is None:
        fault = name_fault(default)
        if fault is not None:
            message = (
                f"the file's name gives the agent the name `{clipped(default)}`, which {fault}"
            )
            findings.put(rules.BAD_NAME, message, document.start(), hint="add `name: …`")
        return default
    name = _TEXT(value, ("name",), findings)
    if name is INVALID:
        return default
    fault = name_fault(name)
    if fault is not None:
        message = f"the name `{clipped(name)}` {fault}"
        findings.add(rules.BAD_NAME, message, ("name",), hint="use letters, digits, `-` and `_`")
    return cast("str", name)


def name_fault(name: str) -> str | None:
    """Return why a string cannot be an agent's name.

    Args:
        name: The text.

    Returns:
        Words that follow the name, such as "starts with `.`"; None if it can.
    """
    if name.isalnum():
        return None
    if not name.strip():
        return "is empty"
    if name.startswith("."):
        return "starts with `.`"
    for char in "/\\":
        if char in name:
            return f"holds `{char}`"
    if not name.isprintable() and any(_is_control(char) for char in name):
        return "holds a control character"
    return None


def _is_control(char: str) -> bool:
    # Line and paragraph separators end lines for terminals and editors too.
    return char < " " or "\x7f" <= char <= "\x9f" or char in "\u2028\u2029"


def _instruction(
    values: Mapping[str, JsonValue], card_type: CardType | None, findings: DiagnosticCollector
) -> str | None:
    value = values.get("instruction")
    document = findings.document
    body = document.instruction()
    if body is not None:
        check_body(document, findings)
    if value is None or (isinstance(value, str) and not value.strip()):
        needed = card_type is not None and card_type in FIELD_NAMED["instruction"].required
        if body is None and needed and not findings.lost("instruction"):
            _missing_instruction(values, cast("CardType", card_type), findings)
        return body
    if body is not None:
        findings.add(
            rules.TWO_INSTRUCTIONS,
            "the instruction is given twice, as a field and as the body",
            ("instruction",),
            key=True,
            hint="keep the field or the text below the frontmatter, not both",
        )
        return body
    text = _TEXT(value, ("instruction",), findings)
    # As in a body: a block of YAML (`|`) ends with a line break that is not meant.
    return None if text is INVALID else cast("str", text).rstrip("\n")


def _missing_instruction(
    values: Mapping[str, JsonValue], card_type: CardType, findings: DiagnosticCollector
) -> None:
    document = findings.document
    message = f"`{card_type}` needs an instruction"
    if "instruction" in values:
        message += "; the field is empty"
        replacement = f'"{_PLACEHOLDER_INSTRUCTION}"'
        span = document.span_of(("instruction",)) or document.start()
        fix = Fix(span, replacement) if span.start != span.end else None
        hint = "say what the agent should do"
        findings.put(rules.MISSING_INSTRUCTION, message, span, hint=hint, fix=fix)
        return
    markdown = document.body is not None
    hint = "write it below the frontmatter" if markdown else "add `instruction: …`"
    fix = None
    if not document.several and not document.yaml.text.lstrip().startswith("{"):
        end = document.source.position(len(document.source.text))
        line = (
            _PLACEHOLDER_INSTRUCTION if markdown else f'instruction: "{_PLACEHOLDER_INSTRUCTION}"'
        )
        fix = Fix(Span(end, end), f"{'' if end.column == 1 else chr(10)}{line}\n")
    findings.put(rules.MISSING_INSTRUCTION, message, document.start(), hint=hint, fix=fix)


def _check_schema_version(value: JsonValue, findings: DiagnosticCollector) -> None:
    if value is None:
        return
    if type(value) is int and value > HIGHEST_SCHEMA_VERSION:
        findings.add(
            rules.NEWER_SCHEMA,
            f"`schema_version` {value} is newer than this program supports",
            ("schema_version",),
            hint=f"the highest supported version is {HIGHEST_SCHEMA_VERSION}; update fast-agent",
        )
        return
    reader(_VERSION.kind)(value, ("schema_version",), findings)


def _history_mode(arguments: dict[str, Any], findings: DiagnosticCollector) -> None:
    mode = cast("str", arguments.pop("history_mode"))
    source, target = HISTORY_MODES[mode]
    both = [name for name in ("history_source", "history_merge_target") if name in arguments]
    if both:
        findings.add(
            rules.HISTORY_MODE_CONFLICT,
            f"`history_mode` is next to {listed(tuple(both))}, which replaces it",
            ("history_mode",),
            key=True,
            hint="remove `history_mode`",
        )
        return
    key = findings.document.yaml.span_of(("history_mode",), key=True)
    value = findings.document.yaml.span_of(("history_mode",))
    replacement = f"history_source: {source}\nhistory_merge_target: {target}"
    in_block = key.start.column == 1 and key.start.line == value.end.line
    findings.put(
        rules.DEPRECATED_HISTORY_MODE,
        f"`history_mode: {mode}` is an older spelling",
        key,
        hint=f"write `history_source: {source}` and `history_merge_target: {target}`",
        fix=Fix(Span(key.start, value.end), replacement) if in_block else None,
        severity="warning",
    )
    arguments["history_source"] = source
    arguments["history_merge_target"] = target


def _check_vote(arguments: Mapping[str, Any], findings: DiagnosticCollector) -> None:
    """Check that a vote can be won: each answer adds at most one vote to its own kind."""
    k: object = arguments.get("k", _VOTE["k"].default)
    most = cast("int", arguments.get("max_samples", _VOTE["max_samples"].default))
    if isinstance(k, int) and k > most:
        findings.add(
            rules.BAD_VALUE,
            f"no answer can get {k} votes ahead (`k`) in {most} answers (`max_samples`)",
            ("max_samples" if "max_samples" in arguments else "k",),
            hint=f"raise `max_samples` well above {k}",
        )


def _check_required(
    arguments: Mapping[str, Any],
    values: Mapping[str, JsonValue],
    card_type: CardType | None,
    findings: DiagnosticCollector,
) -> None:
    for name in () if card_type is None else _REQUIRED_OF[card_type]:
        if arguments.get(name) or findings.lost(name):
            continue
        if values.get(name) is None:
            field: Field = FIELD_NAMED[name]
            span = findings.document.span_of(("type",)) or findings.document.start()
            message = f"`{card_type}` needs `{name}`"
            findings.put(rules.MISSING_FIELD, message, span, hint=f"add `{name}`: {field.doc}")
        elif name in arguments:
            message = f"`{name}` of `{card_type}` must name at least one agent"
            findings.add(rules.MISSING_FIELD, message, (name,), hint="list the names of agents")


def _place(found: Diagnostic) -> tuple[int, int]:
    return (found.span.start.line, found.span.start.column) if found.span else (0, 0)


def expand_fields(
    values: Mapping[str, JsonValue], environ: Mapping[str, str], findings: DiagnosticCollector
) -> dict[str, JsonValue]:
    """Replace the variables in all fields.

    Args:
        values: The fields as written.
        environ: The variables.
        findings: Where unset variables are reported. Their fields are lost.

    Returns:
        The fields with values in place, without the lost ones.
    """
    result: dict[str, JsonValue] = {}
    for name, value in values.items():
        errors = findings.errors
        expanded = _expand_tree(value, (name,), environ, findings)
        if findings.errors == errors:
            result[name] = expanded
        else:
            findings.lose(name)
    return result


def _expand_tree(
    value: JsonValue, path: Keys, environ: Mapping[str, str], findings: DiagnosticCollector
) -> JsonValue:
    if isinstance(value, str):
        if not has_variable(value):
            return value
        try:
            text = expand(value, environ)
        except UnsetVariableError as error:
            message = f"{error.message}, in `{shown(path)}`"
            findings.add(rules.UNSET_VARIABLE, message, path, hint=error.hint)
            return None
        whole = value.startswith("${") and value.find("}") == len(value) - 1
        return Variable(text) if whole else ExpandedText(text)
    if isinstance(value, dict):
        return {
            key: _expand_tree(item, (*path, key), environ, findings) for key, item in value.items()
        }
    if isinstance(value, list):
        return [
            _expand_tree(item, (*path, index), environ, findings)
            for index, item in enumerate(value)
        ]
    return value


_LOCAL_ONLY = tuple(field.name for field in FIELDS if not field.remote)
_FILE = re.compile(r"\{\{\s*file(?:_silent)?\s*:[^{}\n]*(?:\}\})?")
_HINT = "save the card on this machine to use it"


def check_remote(arguments: Mapping[str, Any], findings: DiagnosticCollector) -> None:
    """Report fields and placeholders that would reach into this machine.

    Args:
        arguments: The card's fields, as they were read.
        findings: Where to report.
    """
    for name in _LOCAL_ONLY:
        if arguments.get(name):
            message = f"a card from a web address may not use `{name}`"
            findings.add(rules.FORBIDDEN_REMOTE, message, (name,), key=True, hint=_HINT)
    servers: tuple[McpConnect, ...] = arguments.get("mcp_connect", ())
    written = as_object(findings.document.yaml.value).get("mcp_connect")
    places = [*written] if isinstance(written, Mapping) else range(len(servers))
    for place, server in zip(places, servers, strict=True):
        if not server.target.startswith(("http://", "https://")):
            message = "a card from a web address may not start a command"
            path = ("mcp_connect", place)
            findings.add(rules.FORBIDDEN_REMOTE, message, path, hint=_HINT)
    if _FILE.search(arguments.get("instruction") or ""):
        _report_files(findings)


def _report_files(findings: DiagnosticCollector) -> None:
    document = findings.document
    message = "a card from a web address may not include files"
    found = False
    for match in _FILE.finditer(document.body or ""):
        before = (document.body or "")[: match.start()]
        start = Position(
            document.body_line + before.count("\n"), match.start() - before.rfind("\n")
        )
        span = Span.at(start.line, start.column, len(match[0]))
        findings.put(rules.FORBIDDEN_REMOTE, message, span, hint=_HINT)
        found = True
    if not found:
        findings.add(rules.FORBIDDEN_REMOTE, message, ("instruction",), hint=_HINT)


_MARKERS = ("---USER", "---ASSISTANT", "---RESOURCE")


def check_body(document: CardDocument, findings: DiagnosticCollector) -> None:
    """Report lines of a body that would start a history message.

    Args:
        document: The card's text.
        findings: Where to report.
    """
    body = document.body or ""
    if not any(marker in body for marker in _MARKERS):
        return
    from fast_agent.text.frontmatter import unfenced_lines

    for number, line in unfenced_lines(body):
        marker = line.rstrip()
        if marker in _MARKERS:
            findings.put(
                rules.HISTORY_IN_BODY,
                f"`{marker}` starts a history message, and a card holds no history",
                Span.at(document.body_line + number - 1, 1, len(marker)),
                hint="move the messages to a file and name it in `messages`",
            )
