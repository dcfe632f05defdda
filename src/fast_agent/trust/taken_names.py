"""Taken names: those of what a user gave and of what is built in, which nothing found takes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fast_agent.config.providers import PROVIDERS
from fast_agent.errors import ModelError
from fast_agent.text.frozen import frozen
from fast_agent.text.json_value import as_object
from fast_agent.text.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fast_agent.cards.agent_config import AgentConfig, FunctionRef
    from fast_agent.cards.card import Card
    from fast_agent.config.layer import FileLayer
    from fast_agent.text.json_value import JsonValue, Keys
    from fast_agent.trust.context import ParseModel

BUILT_IN_TOOLS: Final = frozenset(
    {
        "create_agent_card",
        "edit_file",
        "execute",
        "fetch",
        "glob",
        "grep",
        "list_dir",
        "read_file",
        "write_file",
        "load_skill",
        "read_result",
        "read_skill_file",
        "read_text_file",
        "request_human_input",
        "resource_list",
        "resource_read",
        "resource_search",
        "smart",
        "smart_get_resource",
        "smart_list_resources",
        "smart_with_resource",
        "validate",
        "write_text_file",
    }
)
"""The names of the tools the program itself brings."""

_SERVERS: Final = ("mcp", "servers")
_ALIASES: Final = ("model_aliases",)
_ENDPOINTS: Final = ("endpoints",)


@frozen
class TakenNames:
    """The names that found configuration may not take.

    Args:
        parse_model: Takes model specs apart; a name it knows is built in.
        layers: The configuration files a user named, and those of the home.
        servers: Servers provided in addition to these.
    """

    parse_model: ParseModel
    layers: tuple[FileLayer, ...] = ()
    servers: frozenset[str] = frozenset()

    def settings(self, layer: FileLayer) -> dict[Keys, str]:
        """Return the settings of a found file whose names are taken, each with a line that says so.

        Args:
            layer: The file.
        """
        return dict(self._settings(layer))

    def _settings(self, layer: FileLayer) -> Iterator[tuple[Keys, str]]:
        given = {name for one in self.layers for name in _whole_servers(one)} | self.servers
        for name in _names(layer, _SERVERS):
            if name in given:
                yield (*_SERVERS, name), self._line(layer, "server", name, (*_SERVERS, name))
        endpoints = {name for one in self.layers for name in _names(one, _ENDPOINTS)}
        for name in _names(layer, _ENDPOINTS):
            if name in endpoints or name in PROVIDERS or self._is_model(name):
                keys = (*_ENDPOINTS, name)
                yield keys, self._line(layer, "endpoint", name, keys)
        aliases = {name for one in self.layers for name in _names(one, _ALIASES)}
        for name in _names(layer, _ALIASES):
            if name in aliases or name in PROVIDERS or self._is_model(name):
                keys = (*_ALIASES, name)
                yield keys, self._line(layer, "model alias", name, keys)

    def _is_model(self, name: str) -> bool:
        try:
            self.parse_model(name, {}, ())
        except ModelError:
            return False
        return True

    def _line(self, layer: FileLayer, kind: str, name: str, keys: Keys) -> str:
        place = layer.place(keys, key=True)
        line = "" if place.span is None else f":{place.span.start.line}"
        return taken_line(kind, name, f"{layer.path}{line}")


def taken_line(kind: str, name: str, place: str) -> str:
    """Write the line about something found whose name is taken.

    Args:
        kind: What it is, such as `server`.
        name: Its name.
        place: The file it is in.
    """
    return visible(
        f"{kind} `{name}` of {place} is left out: something you gave, or that is built in, has "
        "this name"
    )


def taken_tools(card: Card) -> Iterator[str]:
    """Yield a line for each function of a found card that has the name of a tool of the program."""
    for function in card.config.function_tools:
        name = _function_name(function)
        if name in BUILT_IN_TOOLS:
            yield taken_line("tool", name, f"`{card.config.name}`, {card.path},")


def with_free_tools(config: AgentConfig) -> AgentConfig:
    """Return a found card without the functions that have the name of a tool of the program."""
    if not config.function_tools:
        return config
    tools = config.function_tools
    kept = tuple(one for one in tools if _function_name(one) not in BUILT_IN_TOOLS)
    return config if len(kept) == len(tools) else replace(config, function_tools=kept)


def _function_name(function: FunctionRef) -> str:
    return function.rpartition(":")[2].strip() if isinstance(function, str) else function.__name__


def _whole_servers(layer: FileLayer) -> Iterator[str]:
    """Yield the servers a file defines; a part of one, as of its headers, names none (TR-F1)."""
    servers = as_object(as_object(layer.document.value).get("mcp")).get("servers")
    for name, server in as_object(servers).items():
        if not {"command", "url"}.isdisjoint(as_object(server)):
            yield name


def _names(layer: FileLayer, keys: tuple[str, ...]) -> Iterable[str]:
    value: JsonValue = layer.document.value
    for key in keys:
        value = as_object(value).get(key)
    return as_object(value)
