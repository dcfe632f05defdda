"""The effects of a found card, worked out from its text alone."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from fast_agent.cards.fields import FIELD_NAMED, FIELDS, HISTORY_MODES
from fast_agent.cards.placeholder import PROJECT_FILES, parse_template
from fast_agent.config.server import is_url, split_command
from fast_agent.config.settings import CALIBRATION_SAMPLES, MAX_ITERATIONS
from fast_agent.errors import CardError, ConfigError
from fast_agent.text.environment import has_variable, variables_in, with_defaults
from fast_agent.text.json_value import as_list, as_object
from fast_agent.trust.address import address_of, shown_address
from fast_agent.trust.digest import ABSENT, source_digest
from fast_agent.trust.effect import ANY_COMMAND, ANY_FILE, ANY_PAGE, Holder
from fast_agent.trust.free_models import destination, model_of, only_talks
from fast_agent.trust.function_path import find_function_file, parse_function_path
from fast_agent.trust.site import CODE_IN_VARIABLE, TARGET_IN_VARIABLE, TOO_MANY, Site

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.cards.card import Card
    from fast_agent.text.json_value import JsonValue
    from fast_agent.trust.context import Context
    from fast_agent.trust.effect import Effect
    from fast_agent.trust.site import Keys

    Work: TypeAlias = Callable[["CardEffects", str, JsonValue], Iterator[Effect]]

_TALKING: Final = frozenset({"type", "model"})

FIXED: Final = frozenset(
    {"type", "name", "default", "tool_only"}
    | {field.name for field in FIELDS if field.holds in {"card", "server"}}
)
"""Fields of a found card that no variable may hold: they say which agents and servers there are."""

NOT_FIXED: Final = "a found card cannot have a variable there"
LOADED_BY_ITSELF: Final = ".fast-agent/agent-cards/"

_AS_WRITTEN = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*(?::[^{}]*)?)\}")
_MARKED = re.compile("\ue000([^\ue001]*)\ue001")


class CardEffects:
    """The effects of one card.

    Args:
        card: The card; it need not be sound.
        context: The context its set is surveyed with.
    """

    def __init__(self, card: Card, context: Context) -> None:
        config = card.config
        source = config.source
        self.card = card
        self.config = config
        self.context = context
        self.values: Mapping[str, JsonValue] = card.written or {}
        self.directory = context.given.cwd if source is None else context.folder(source)
        self.site = Site(
            context,
            Holder("card", config.name),
            _name_of(card) if source is None else context.root.file_name(str(source)),
            self.directory,
            partial(_line, card),
        )

    def all(self) -> Iterator[Effect]:
        """Yield every effect, in the order of the fields."""
        for name, value in self.values.items():
            work = _WORK.get(name)
            if work is not None and value is not None:
                yield from work(self, name, value)
        document = self.card.document
        if document is not None and document.body is not None and "{{" in document.body:
            yield from _instruction(self, "instruction", None)
        if document is not None and "${" in document.yaml.text:
            yield from self._variables()
        yield from self._given_effects()

    def shell_folder(self) -> str:
        """Return the directory its shell commands start in, for a subject; empty for the usual."""
        cwd = self.values.get("cwd")
        if not isinstance(cwd, str):
            return ""
        if has_variable(cwd):
            return f" in {cwd}"
        return f" in {self.context.root.name(self.directory / cwd)}"

    def prose(self) -> dict[str, str]:
        """Return the digests of texts of the set that its instruction includes.

        They decide what an agent with a shell does, so that a change of them asks again.
        """
        found: dict[str, str] = {}
        written = self.values.get("instruction")
        text = written if isinstance(written, str) else self.config.instruction
        if not text or ("{{" not in text and "${" not in text):
            return found
        root = self.context.root
        for file in self.named_files():
            if root.holds(file):
                found[root.name(file)] = source_digest(file)
        return found

    def named_files(self) -> Iterator[Path]:
        """Yield the files that its instruction may include; they need not exist."""
        for name, argument, _ in self.placeholders():
            if name in {"file", "file_silent"} and not has_variable(argument):
                yield from self.included(argument)
            elif name == "projectInstructions":
                yield from (self.context.given.cwd / one for one in PROJECT_FILES)

    def placeholders(self) -> Iterator[tuple[str, str, str]]:
        """Yield the placeholders of its instruction, by name, argument and text as written."""
        written = self.values.get("instruction")
        if isinstance(written, str) and written.strip():
            yield from _placeholders(written)
        else:
            # Variables in the body of a Markdown card are only text.
            yield from _plain_placeholders(self.config.instruction or "")

    def included(self, argument: str) -> tuple[Path, ...]:
        """Return the files that a `{{file:…}}` may name, in the order they are tried."""
        places = dict.fromkeys((self.directory, self.context.given.cwd))
        return tuple([place / argument for place in places])

    def children(self) -> tuple[str, ...]:
        """Return the agents it calls, as written."""
        return names_in(self.values.get("agents"))

    def model(self) -> str | None:
        """Return its model as written; None where it names none."""
        return model_of(self.values)

    def _variables(self) -> Iterator[Effect]:
        """Yield the variables in fields whose own work does not say where they go."""
        for name, value in self.values.items():
            if name in _SENDING:
                continue
            field = FIELD_NAMED.get(name)
            to, host = f"`{name}`", ""
            if field is None or field.holds is None:
                to, host = destination(self.context, self.model())
            for keys, text in texts_in(value, (name,)):
                if name in FIXED:
                    for variable in variables_in(text):
                        subject = f"{variable} to `{name}`"
                        yield self.site.effect("send", subject, keys, near=text, refusal=NOT_FIXED)
                else:
                    yield from self.site.sends(text, keys, to=to, host=host)

    def _given_effects(self) -> Iterator[Effect]:
        """Yield what the user gave that reaches this card without being named in it."""
        given, config, site = self.context.given, self.config, self.site
        if config.type in _LLM_TYPES:
            for option in (*given.shared, *given.options.get(config.name, ())):
                subject = f"`{option}` reaches agent `{config.name}`"
                files = self.prose() if option in given.shared else {}
                yield site.effect("use", subject, ("name",), files=files)
            for name in () if config.tool_only else given.editor_servers:
                subject = f"server `{name}` of the editor reaches agent `{config.name}`"
                yield site.effect("use", subject, ("name",), files=self.prose())
        if config.name in self.context.tool_cards:
            receiver = given.agents.get(given.receiver or "")
            if receiver is not None and has_tools(receiver, self.context):
                subject = f"agent `{config.name}` is a tool of your agent `{receiver.name}`"
                yield site.effect("use", subject, ("name",), files=self.prose())


def _name_of(card: Card) -> str:
    """Return how approvals name a card without a file: its address, without what it may keep."""
    remote = card.config.remote
    return card.path if remote is None else shown_address(remote)


_LLM_TYPES: Final = FIELD_NAMED["servers"].types


def card_effects(card: Card, context: Context) -> tuple[Effect, ...]:
    """Work out the effects of a card.

    Args:
        card: A card of the set, as it was read.
        context: The context the set is surveyed with.
    """
    given = context.given
    values = card.written
    if values is None:
        return ()
    document = card.document
    plain = (
        document is not None
        and (values.keys().isdisjoint(_WORK) or _only_talks(card, values, context))
        and "${" not in document.yaml.text
        and (document.body is None or "{{" not in document.body)
        and not given.shared
        and not given.editor_servers
        and card.config.name not in given.options
        and card.config.name not in context.tool_cards
    )
    # Most cards have no field that could act: this test is what a thousand of them cost.
    return () if plain else tuple(CardEffects(card, context).all())


def _only_talks(card: Card, values: Mapping[str, JsonValue], context: Context) -> bool:
    """Return whether a card has no field that could act but a model that only talks."""
    model = values.get("model", "")
    return (
        isinstance(model, str)
        and card.config.type != "smart"
        and values.keys() & _WORK.keys() <= _TALKING
        and (not model or only_talks(model, context))
    )


def has_tools(config: AgentConfig, context: Context) -> bool:
    """Return whether a given agent has tools that act, so that offering it words is a `use`."""
    given = context.given
    return bool(
        given.shared
        or given.options.get(config.name)
        or config.type == "smart"
        or config.servers
        or config.mcp_connect
        or config.function_tools
        or config.shell
        or config.files
        or config.fetch
        or config.agents
    )


def _type(card: CardEffects, name: str, value: JsonValue) -> Iterator[Effect]:
    del value
    if card.config.type == "smart":
        note = "its tool `create_agent_card` writes cards there"
        yield card.site.effect(
            "write", LOADED_BY_ITSELF, (name,), files=card.prose(), notes=(note,)
        )


def _model(card: CardEffects, name: str, value: JsonValue) -> Iterator[Effect]:
    for keys, text in texts_in(value, (name,)):
        yield from card.site.model(text, keys, card.directory)


def _human_input(card: CardEffects, name: str, value: JsonValue) -> Iterator[Effect]:
    if value is not False:
        yield card.site.eases(name, False, value, (name,))


def _api_key(card: CardEffects, name: str, value: JsonValue) -> Iterator[Effect]:
    to, host = destination(card.context, card.model())
    if not isinstance(value, str):
        return
    if variables_in(value):
        yield from card.site.sends(value, (name,), to=to, host=host)
    else:
        yield card.site.effect("send", f"{name} to {to}", (name,))


def _messages(card: CardEffects, name: str, value: JsonValue) -> Iterator[Effect]:
    for keys, text in texts_in(value, (name,)):
        yield from card.site.reads(text, keys)


def _servers(card: CardEffects, name: str, value: JsonValue) -> Iterator[Effect]:
    for keys, server in texts_in(value, (name,)):
        if server not in card.context.servers or server in card.context.given.editor_servers:
            subject = f"server `{server}` serves agent `{card.config.name}`"
            files = card.prose()
            yield card.site.effect("use", subject, keys, near=server, files=files)


def _mcp_connect(card: CardEffects, name: str, value: JsonValue) -> Iterator[Effect]:
    items = value.items() if isinstance(value, Mapping) else enumerate(as_list(value))
    for place, item in items:
        facts = {"target": item} if isinstance(item, str) else as_object(item)
        target = facts.get("target")
        if isinstance(target, str) and target.strip():
            yield from _target(card, (name, place), target, facts)


def _target(
    card: CardEffects, keys: Keys, target: str, facts: Mapping[str, JsonValue]
) -> Iterator[Effect]:
    site = card.site
    first = target.strip().partition(" ")[0]
    if has_variable(first) and not re.match(r"https?://", first):
        yield site.effect("run", target, keys, near=target, refusal=TARGET_IN_VARIABLE)
        yield from site.sends(target, keys, to="`mcp_connect`", near=target)
    elif is_url(target):
        yield from site.connection(target, keys, near=target)
        yield from site.headers(
            facts.get("headers"), (*keys, "headers"), address_of(target), near=target
        )
    else:
        yield from _command(card, keys, target, facts)
    for text in (facts.get("name"),):
        if isinstance(text, str):
            yield from site.sends(text, keys, to="`mcp_connect`", near=text)


def _command(
    card: CardEffects, keys: Keys, target: str, facts: Mapping[str, JsonValue]
) -> Iterator[Effect]:
    try:
        command, args = split_command(target, "mcp_connect")
    except ConfigError:
        return  # it is reported where the server is made, and cannot be run
    added = as_object(facts.get("env")).items()
    yield from card.site.program(
        os.path.expanduser(command),  # noqa: PTH111 - unknown users stay as they are
        args,
        keys,
        cwd=card.directory,
        env={key: value for key, value in added if isinstance(value, str)},
        near=target,
    )


def _skills(card: CardEffects, name: str, value: JsonValue) -> Iterator[Effect]:
    for keys, text in texts_in(value, (name,)):
        yield from card.site.reads(text, keys, folder=True)


def _functions(card: CardEffects, name: str, value: JsonValue) -> Iterator[Effect]:
    for keys, text in texts_in(value, (name,)):
        yield _function(card, text, keys)


def _function(card: CardEffects, text: str, keys: Keys) -> Effect:
    context = card.context
    if has_variable(text):
        return card.site.effect("run", text, keys, near=text, refusal=CODE_IN_VARIABLE)
    try:
        path = parse_function_path(text)
        file = find_function_file(path, card.directory, context.given.cwd)
    except CardError:
        # It cannot be imported now; where the file is created later, that is a change.
        written = card.directory / text.rpartition(":")[0]
        files = {context.root.name(written): ABSENT}
        return card.site.effect("run", text, keys, near=text, files=files)
    digests = context.code(file.parent)
    subject = f"{context.root.name(file)}:{path.name}"
    refusal = TOO_MANY if digests is None else None
    return card.site.effect("run", subject, keys, near=text, files=digests, refusal=refusal)


def _shell(card: CardEffects, name: str, value: JsonValue) -> Iterator[Effect]:
    if value is not False:
        subject = f"{ANY_COMMAND}{card.shell_folder()}"
        yield card.site.effect("run", subject, (name,), files=card.prose())


def _files(card: CardEffects, name: str, value: JsonValue) -> Iterator[Effect]:
    # A variable may say `write` later.
    prose = card.prose()
    yield card.site.effect("read", ANY_FILE, (name,), files=prose)
    if value != "read":
        yield card.site.effect("write", ANY_FILE, (name,), files=prose)


def _fetch(card: CardEffects, name: str, value: JsonValue) -> Iterator[Effect]:
    if value is not False:
        yield card.site.effect("connect", ANY_PAGE, (name,), files=card.prose())


def _references(card: CardEffects, name: str, value: JsonValue) -> Iterator[Effect]:
    context = card.context
    for keys, agent in texts_in(value, (name,)):
        if agent not in context.cards and not has_variable(agent):
            yours = "your agent" if agent in context.given.agents else "agent"
            subject = f"{yours} `{agent}` is called by `{card.config.name}`"
            yield card.site.effect("use", subject, keys, near=agent, files=card.prose())


def _merge_target(card: CardEffects, name: str, value: JsonValue) -> Iterator[Effect]:
    if _may_be_messages(value):
        routed = as_object(card.values.get("child_history"))
        for child in card.children():
            if as_object(routed.get(child)).get("merge_target") is None:
                yield from _merge(card, child, (name,))


def _history_mode(card: CardEffects, name: str, value: JsonValue) -> Iterator[Effect]:
    if isinstance(value, str) and HISTORY_MODES.get(value, ("", "messages"))[1] == "messages":
        yield from _merge_target(card, name, "messages")


def _child_history(card: CardEffects, name: str, value: JsonValue) -> Iterator[Effect]:
    for child, route in as_object(value).items():
        if _may_be_messages(as_object(route).get("merge_target")):
            yield from _merge(card, child, (name, child))


def _merge(card: CardEffects, child: str, keys: Keys) -> Iterator[Effect]:
    """Yield what merging into the history of a child writes: the first file of its `messages`."""
    context = card.context
    found, given = context.cards.get(child), context.given.agents.get(child)
    if found is not None:
        names = names_in((found.written or {}).get("messages"))
        directory = found.config.directory
    elif given is not None:
        names, directory = given.messages, given.directory
    else:
        return
    if names:
        file = (directory or context.given.cwd) / names[0]
        yield card.site.writes(file, names[0], keys, card.prose())


def _may_be_messages(value: JsonValue) -> bool:
    return isinstance(value, str) and (value == "messages" or has_variable(value))


def _at_most(default: int | None) -> Work:
    """Make the work of a field that raises a bound of the program."""

    def work(card: CardEffects, name: str, value: JsonValue) -> Iterator[Effect]:
        bound = default
        if bound is None:
            declared = FIELD_NAMED[name].default_for(card.config.type)
            bound = declared if isinstance(declared, int) else None
        if is_weaker(value, bound):
            yield card.site.eases(name, bound, value, (name,))

    return work


_WEB_TOOLS: Final = frozenset({"web_search", "webSearch", "web_fetch", "webFetch"})
"""Request parameters that let a model reach the web from its provider."""


def is_weaker(value: JsonValue, bound: float | None) -> bool:
    """Return whether a value is a weaker bound; one that is only known later counts as weaker.

    Args:
        value: As written; -1 means no bound.
        bound: The bound that holds; None and -1 are none.
    """
    if bound is None or bound == -1:
        return False
    if isinstance(value, str):
        return has_variable(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value > bound or value == -1


def request_params(
    site: Site, value: JsonValue, keys: Keys, *, to: tuple[str, str]
) -> Iterator[Effect]:
    """Yield the effects of request parameters, of a card or of a configuration.

    Args:
        site: The part they are in.
        value: As written.
        keys: Where they are.
        to: Where the model is: words, and the host.
    """
    if not isinstance(value, Mapping):
        return
    own = site.context.given.settings.request_params
    for key, inner in value.items():
        if key in {"max_iterations", "maxIterations"}:
            bound = own.max_iterations or MAX_ITERATIONS
            if is_weaker(inner, bound):
                yield site.eases("max_iterations", bound, inner, (*keys, key))
        elif key in {"usage_limits", "usageLimits"} and isinstance(inner, Mapping):
            for name, limit in inner.items():
                field = re.sub(r"([A-Z])", r"_\1", name).lower()
                bound = getattr(own.usage_limits, field, None)
                if is_weaker(limit, bound):
                    yield site.eases(f"usage_limits.{field}", bound, limit, (*keys, key, name))
        elif key in {"extra_body", "extraBody"} and isinstance(inner, Mapping) and inner:
            names = ", ".join(f"`{name}`" for name in inner)
            yield site.effect("send", f"extra_body {names} to {to[0]}", (*keys, key), near=key)
    yield from _web_tools(site, value, keys)
    for at, text in texts_in(value, keys):
        yield from site.sends(text, at, to=to[0], host=to[1])


def _web_tools(site: Site, params: Mapping[str, JsonValue], keys: Keys) -> Iterator[Effect]:
    for key in sorted(_WEB_TOOLS & params.keys()):
        if params[key]:
            yield site.effect("connect", ANY_PAGE, (*keys, key), near=key)


def _request_params(card: CardEffects, name: str, value: JsonValue) -> Iterator[Effect]:
    to = destination(card.context, card.model())
    yield from request_params(card.site, value, (name,), to=to)


def _instruction(card: CardEffects, name: str, value: JsonValue) -> Iterator[Effect]:
    for kind, argument, written in dict.fromkeys(card.placeholders()):
        yield from _placeholder(card, (name,), kind, argument, written)
    if isinstance(value, str):
        to, host = destination(card.context, card.model())
        yield from card.site.sends(value, (name,), to=to, host=host)


def _placeholder(
    card: CardEffects, keys: Keys, kind: str, argument: str, written: str
) -> Iterator[Effect]:
    site = card.site
    if kind == "url":
        yield from site.connection(argument, keys, near=written)
    elif kind in {"file", "file_silent"}:
        if has_variable(argument):
            yield from site.reads(argument, keys)
            return
        root = card.context.root
        for file in card.included(argument):
            if os.path.lexists(file) and not root.is_free(file):
                yield site.effect("read", root.name(file), keys, near=written)


def _placeholders(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the placeholders of an instruction, by name, argument and text as written.

    Variables are replaced before placeholders are searched for, so that one may contain a part of a
    placeholder: the search runs with the variables marked, and with their defaults inserted.
    """
    if "{{" not in text and "${" not in text:
        return
    marked = _AS_WRITTEN.sub("\ue000\\1\ue001", text)
    forms = dict.fromkeys((marked, _AS_WRITTEN.sub("\ue000\\1\ue001", with_defaults(text))))
    if has_variable(text):
        forms[_AS_WRITTEN.sub("", with_defaults(text))] = None
    for form in forms:
        for name, argument, written in _plain_placeholders(form):
            yield name, _MARKED.sub(r"${\1}", argument), _MARKED.sub(r"${\1}", written)


def _plain_placeholders(text: str) -> Iterator[tuple[str, str, str]]:
    if "{{" in text:
        for found in parse_template(text).placeholders:
            if found.argument:
                yield found.name, found.argument, str(found)


def texts_in(value: JsonValue, keys: Keys) -> Iterator[tuple[Keys, str]]:
    """Yield every text in a value, with the keys that lead to it.

    Args:
        value: As written.
        keys: Where it is.
    """
    if isinstance(value, str):
        yield keys, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from texts_in(inner, (*keys, key))
    else:
        for index, inner in enumerate(as_list(value)):
            yield from texts_in(inner, (*keys, index))


def names_in(value: JsonValue) -> tuple[str, ...]:
    """Return the texts of a list, or of one text without the list around it."""
    if isinstance(value, str):
        return (value,)
    items = as_list(value)
    return tuple([one for one in items if isinstance(one, str)])


def _line(card: Card, keys: Keys, near: str) -> int | None:
    """Find the line of a value in a card, without composing its YAML where that is plain."""
    document = card.document
    if document is None or document.source.is_made:
        return None
    text = document.yaml.text
    field = str(keys[0])
    start = 0 if text.startswith(f"{field}:") else text.find(f"\n{field}:") + 1
    if start == 0 and not text.startswith(f"{field}:"):
        return _line_elsewhere(card, keys, near)
    if near:
        at = text.find(near, start)
        start = start if at < 0 else at
    return document.yaml.first_line + text.count("\n", 0, start)


def _line_elsewhere(card: Card, keys: Keys, near: str) -> int | None:
    document = card.document
    if document is None:
        return None
    body = document.body
    if keys[0] == "instruction" and body is not None and "instruction" not in (card.written or {}):
        at = body.find(near) if near else -1
        if at >= 0:
            return document.body_line + body.count("\n", 0, at)
        return document.body_span().start.line
    span = document.span_of(keys, key=True)
    return document.start().start.line if span is None else span.start.line


_WORK: Final[Mapping[str, Work]] = {
    "type": _type,
    "model": _model,
    "request_params": _request_params,
    "human_input": _human_input,
    "api_key": _api_key,
    "messages": _messages,
    "servers": _servers,
    "mcp_connect": _mcp_connect,
    "skills": _skills,
    "function_tools": _functions,
    "tool_hooks": _functions,
    "shell": _shell,
    "files": _files,
    "fetch": _fetch,
    "agents": _references,
    "history_merge_target": _merge_target,
    "history_mode": _history_mode,
    "child_history": _child_history,
    "sequence": _references,
    "fan_out": _references,
    "fan_in": _references,
    "generator": _references,
    "evaluator": _references,
    "worker": _references,
    "max_refinements": _at_most(None),
    "plan_iterations": _at_most(None),
    "max_samples": _at_most(None),
    "calibration_samples": _at_most(CALIBRATION_SAMPLES),
    "instruction": _instruction,
}
"""What works out the effects of each field that can have some."""

_SENDING: Final = frozenset({"api_key", "request_params", "mcp_connect", "instruction"})
"""Fields whose own work says where their variables go."""
