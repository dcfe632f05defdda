"""The effects of a found configuration, worked out from the text of its files alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from fast_agent.config.providers import PROVIDERS, split_models
from fast_agent.config.settings import (
    CALL_TIMEOUT_SECONDS,
    DISK_SECONDS,
    LEASE_SECONDS,
    SAMPLING_ANSWERS,
    SHELL_OUTPUT_BYTES,
    SHELL_TIMEOUT_SECONDS,
)
from fast_agent.text.environment import has_variable, variables_in
from fast_agent.text.frozen import frozen
from fast_agent.text.json_value import as_list, as_object
from fast_agent.trust.address import Address, address_of
from fast_agent.trust.effect import Holder
from fast_agent.trust.effects.card_effects import is_weaker, request_params, texts_in
from fast_agent.trust.free_models import destination, is_own_address
from fast_agent.trust.site import Site, placed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fast_agent.config.layer import FileLayer
    from fast_agent.text.json_value import JsonValue
    from fast_agent.trust.context import Context, GivenOptions
    from fast_agent.trust.effect import Effect
    from fast_agent.trust.site import Keys

DEFAULT_BOUNDS: Final[Mapping[tuple[str, str], float]] = {
    ("shell", "timeout_seconds"): SHELL_TIMEOUT_SECONDS,
    ("shell", "max_output_bytes"): SHELL_OUTPUT_BYTES,
    ("sessions", "disk_seconds"): DISK_SECONDS,
    ("sessions", "lease_seconds"): LEASE_SECONDS,
}
"""The bounds of someone who set none, by section and key; a larger one is weaker."""

_SERVER_BOUNDS: Final[Mapping[str, float]] = {
    "call_timeout_seconds": CALL_TIMEOUT_SECONDS,
}
_OF_PROVIDER: Final = frozenset({"base_url", "api_key", "headers"})
_TEMPORAL_FILES: Final = frozenset({"server_ca", "client_certificate", "client_key", "key_file"})
_TEMPORAL_SAFETY: Final = frozenset({"tls", "server_ca", "key_file", "heartbeat_seconds"})
_PROGRAM_KEYS: Final = ("command", "args", "env", "cwd")


def config_effects(layers: Sequence[FileLayer], context: Context) -> tuple[Effect, ...]:
    """Work out the effects of the configuration of a set.

    Args:
        layers: Its files, the weakest first; `${NAME}` stays as it is.
        context: The context the set is surveyed with.
    """
    found: list[Effect] = []
    for layer in layers:
        found.extend(_Layer(layer, context).effects())
    found.extend(_server_effects(layers, context))
    return tuple(found)


def server_names(layers: Sequence[FileLayer]) -> frozenset[str]:
    """Return the names of the servers that a set's configuration has a part in."""
    return frozenset(name for layer in layers for name in _servers(layer))


def model_aliases(layers: Sequence[FileLayer]) -> dict[str, str]:
    """Return the model aliases of a set's configuration, as written."""
    aliases: dict[str, str] = {}
    for layer in layers:
        own = as_object(as_object(layer.document.value).get("model_aliases"))
        aliases.update({name: spec for name, spec in own.items() if isinstance(spec, str)})
    return aliases


def names_found_alias(text: str, layers: Sequence[FileLayer], given: GivenOptions) -> bool:
    """Return whether a model spec goes through an alias of a set's configuration.

    Args:
        text: The spec.
        layers: The files of the configuration.
        given: What the user gave, with their own aliases.
    """
    found = model_aliases(layers)
    aliases = {**given.settings.model_aliases, **found}
    return any(_leads_to(one, found, aliases) for one in split_models(text))


def _leads_to(text: str, found: Mapping[str, str], aliases: Mapping[str, str]) -> bool:
    seen: set[str] = set()
    while True:
        head = text.partition("?")[0].strip()
        name = head if head in aliases else head.rpartition(".")[0]
        if name in found:
            return True
        if name not in aliases or name in seen:
            return False
        seen.add(name)
        text = aliases[name]


def base_urls(layers: Sequence[FileLayer]) -> dict[str, str]:
    """Return the addresses of providers and endpoints in a set's configuration, as written."""
    urls: dict[str, str] = {}
    for layer in layers:
        for name in PROVIDERS:
            url = as_object(as_object(layer.document.value).get(name)).get("base_url")
            if isinstance(url, str):
                urls[name] = url
        for name, section in as_object(as_object(layer.document.value).get("endpoints")).items():
            url = as_object(section).get("base_url")
            if isinstance(url, str):
                urls[f"endpoints.{name}"] = url
    return urls


def default_model(layers: Sequence[FileLayer]) -> str | None:
    """Return the model that a set's configuration names for cards without one, as written."""
    found = None
    for layer in layers:
        model = as_object(layer.document.value).get("default_model")
        names = [one for one in as_list(model) if isinstance(one, str)]
        found = model if isinstance(model, str) else ", ".join(names) or found
    return found


class _Layer:
    """The effects of one configuration file, but for its servers."""

    def __init__(self, layer: FileLayer, context: Context) -> None:
        self._layer = layer
        self._context = context
        self._value = as_object(layer.document.value)

    def effects(self) -> Iterator[Effect]:
        """Yield them in the order of the file."""
        for section, value in self._value.items():
            if section in PROVIDERS:
                yield from self._provider(section, as_object(value))
            elif section == "endpoints":
                for name, inner in as_object(value).items():
                    yield from self._endpoint(name, as_object(inner))
            elif section == "mcp":
                for key, inner in as_object(value).items():
                    if key != "servers":
                        yield from self._variables(section, inner, (section, key))
            else:
                work = _SECTIONS.get(section)
                if work is not None and value is not None:
                    yield from work(self, section, value)
                yield from self._bounds(section, as_object(value))
                if section not in _SENDING:
                    yield from self._variables(section, value, (section,))

    def site(self, holder: str) -> Site:
        """Return the part of the file that a setting is."""
        return site_of(self._layer, Holder("setting", holder), self._context)

    def _provider(self, name: str, section: Mapping[str, JsonValue]) -> Iterator[Effect]:
        provider = PROVIDERS[name]
        url, key = section.get("base_url"), section.get("api_key")
        shown, host = _provider_place(name, self._context)
        if isinstance(url, str) and not is_own_address(name, url):
            site, keys = self.site(f"{name}.base_url"), (name, "base_url")
            yield from site.connection(url, keys)
            whose = f"`{name}`" if name == "generic" else provider.label
            yield site.effect("send", f"your {whose} key to {shown}", keys)
        if isinstance(key, str):
            site, keys = self.site(f"{name}.api_key"), (name, "api_key")
            if variables_in(key):
                yield from site.sends(key, keys, to=shown, host=host)
            else:
                yield site.effect("send", f"`{name}.api_key` to {shown}", keys)
        if "headers" in section:
            site = self.site(f"{name}.headers")
            yield from site.headers(section["headers"], (name, "headers"), Address("", shown, ""))
        rest = {one: value for one, value in section.items() if one not in _OF_PROVIDER}
        yield from self._variables(name, rest, (name,))

    def _endpoint(self, name: str, section: Mapping[str, JsonValue]) -> Iterator[Effect]:
        site, keys = self.site(f"endpoints.{name}"), ("endpoints", name)
        url, key = section.get("base_url"), section.get("api_key")
        address = address_of(url if isinstance(url, str) else "")
        if isinstance(url, str):
            yield from site.connection(url, (*keys, "base_url"))
            yield site.effect("send", f"prompts to {address}", (*keys, "base_url"))
        if isinstance(key, str):
            inner, to = (*keys, "api_key"), str(address)
            if variables_in(key):
                yield from site.sends(key, inner, to=to, host=address.host)
            else:
                yield site.effect("send", f"`endpoints.{name}.api_key` to {to}", inner)
        yield from site.headers(section.get("headers"), (*keys, "headers"), address)
        rest = {one: value for one, value in section.items() if one not in _OF_PROVIDER}
        for at, text in texts_in(rest, keys):
            yield from site.sends(text, at, to=str(address), host=address.host)

    def _bounds(self, section: str, value: Mapping[str, JsonValue]) -> Iterator[Effect]:
        own = getattr(self._context.given.settings, section, None)
        for (at, name), default in DEFAULT_BOUNDS.items():
            if at == section and name in value:
                given = getattr(own, name, None)
                bound = default if given is None else given
                if is_weaker(value[name], bound):
                    setting = f"{section}.{name}"
                    yield self.site(section).eases(setting, bound, value[name], (section, name))

    def _variables(self, section: str, value: JsonValue, keys: Keys) -> Iterator[Effect]:
        for at, text in texts_in(value, keys):
            yield from self.site(section).sends(text, at, to=f"`{section}`")

    def default_model(self, section: str, value: JsonValue) -> Iterator[Effect]:
        """Yield what the default model does; its files are searched for where the program works."""
        for keys, text in texts_in(value, (section,)):
            yield from self.site(section).model(text, keys, self._context.given.cwd)

    def model_aliases(self, section: str, value: JsonValue) -> Iterator[Effect]:
        """Yield what each alias does: its files are searched for next to the cards that use it."""
        given = self._context.given
        places = dict.fromkeys((given.cwd, *(one.directory for one in given.agents.values())))
        for name, spec in as_object(value).items():
            for place in places:
                if isinstance(spec, str) and place is not None:
                    yield from self.site(section).model(spec, (section, name), place)

    def local(self, section: str, value: JsonValue) -> Iterator[Effect]:
        """Yield the model files it names."""
        site, directory = self.site(section), self._layer.directory
        path = as_object(value).get("path")
        if isinstance(path, str):
            yield site.model_file(path, (section, "path"), directory)
        for name, file in as_object(as_object(value).get("models")).items():
            if isinstance(file, str):
                yield site.model_file(file, (section, "models", name), directory)

    def request_params(self, section: str, value: JsonValue) -> Iterator[Effect]:
        """Yield what is sent with each request, and the weaker bounds."""
        to = ("every provider", "")
        yield from request_params(self.site(section), value, (section,), to=to)

    def shell(self, section: str, value: JsonValue) -> Iterator[Effect]:
        """Yield the variables that commands get although they look like secrets."""
        names = as_object(value).get("variables")
        for index, name in enumerate(as_list(names)):
            if isinstance(name, str):
                keys = (section, "variables", index)
                subject = f"{name} to every shell command"
                yield self.site(section).effect("send", subject, keys, terms=(name, ""))

    def sessions(self, section: str, value: JsonValue) -> Iterator[Effect]:
        """Yield the database that conversations would be sent to."""
        url = as_object(value).get("url")
        if isinstance(url, str):
            site, keys = self.site(f"{section}.url"), (section, "url")
            yield from site.connection(url, keys)
            yield site.effect("send", f"every conversation to {address_of(url)}", keys)

    def temporal(self, section: str, value: JsonValue) -> Iterator[Effect]:
        """Yield where runs would be sent, the files read, and what protects them less."""
        site = self.site(section)
        own = getattr(self._context.given.settings, section, None)
        for name, one in as_object(value).items():
            keys = (section, name)
            text = one if isinstance(one, str) else ""
            if name in {"address", "parts"} and text:
                url = f"https://{text}" if name == "address" else text
                if "://" in url:
                    yield from site.connection(url, keys)
                    yield site.effect("send", f"every run to {address_of(url)}", keys)
                else:
                    yield site.effect("send", f"every run to the directory {text}", keys)
            if name in _TEMPORAL_FILES and text:
                yield from site.reads(text, keys)
            if name in _TEMPORAL_SAFETY and one is not None:
                yield site.eases(f"{section}.{name}", getattr(own, name, None), one, keys)

    def skills(self, section: str, value: JsonValue) -> Iterator[Effect]:
        """Yield the directories of skills that lie elsewhere."""
        folders = as_object(value).get("directories")
        for index, folder in enumerate(as_list(folders)):
            if isinstance(folder, str):
                keys = (section, "directories", index)
                yield from self.site(section).reads(folder, keys, folder=True)

    def guide(self, section: str, value: JsonValue) -> Iterator[Effect]:
        """Yield the directory of documents where it lies elsewhere."""
        yield from guide_reads(self.site(section), as_object(value), (section,))


def guide_reads(site: Site, value: Mapping[str, JsonValue], keys: Keys) -> Iterator[Effect]:
    """Yield the directories of a guide that are not free, of a section or a `.guide.yaml`.

    Args:
        site: The part it is in.
        value: The guide, as written.
        keys: Where it is.
    """
    docroot = value.get("docroot")
    base = site.directory
    if isinstance(docroot, str):
        yield from site.reads(docroot, (*keys, "docroot"), folder=True)
        if has_variable(docroot):
            return
        base = placed(docroot, base) or base
    for name, category in as_object(value.get("categories")).items():
        folder = as_object(category).get("dir")
        if isinstance(folder, str):
            inner = str(base / folder) if not has_variable(folder) else folder
            yield from site.reads(inner, (*keys, "categories", name, "dir"), folder=True)


@frozen
class _Server:
    """What the files of a set say of one server together.

    Args:
        name: Its name.
        values: Its values, those of the strongest file that has each.
        layers: The file of each value.
    """

    name: str
    values: Mapping[str, JsonValue]
    layers: Mapping[str, FileLayer]


def _server_effects(layers: Sequence[FileLayer], context: Context) -> Iterator[Effect]:
    merged: dict[str, tuple[dict[str, JsonValue], dict[str, FileLayer]]] = {}
    for layer in layers:
        for name, server in _servers(layer).items():
            values, own = merged.setdefault(name, ({}, {}))
            for key, value in as_object(server).items():
                values[key] = _joined(values.get(key), value)
                own[key] = layer
    for name, (values, own) in merged.items():
        if values.get("enabled") is not False and own:
            yield from _one_server(_Server(name, values, own), context)


def _one_server(server: _Server, context: Context) -> Iterator[Effect]:
    values, name = server.values, server.name
    url, command = values.get("url"), values.get("command")
    if isinstance(url, str):
        site, keys = _server_site(server, "url", context)
        yield from site.connection(url, keys)
        site, keys = _server_site(server, "headers", context)
        yield from site.headers(values.get("headers"), keys, address_of(url))
        yield from _authorization(server, url, context)
    elif "headers" in values:
        site, keys = _server_site(server, "headers", context)
        for header in as_object(values["headers"]):
            yield site.effect("send", f"header `{header}` to server `{name}`", (*keys, header))
    if isinstance(command, str):
        yield from _start(server, command, context)
    else:
        yield from _part_of_start(server, context)
    yield from _rest_of_server(server, context)


def _authorization(server: _Server, url: str, context: Context) -> Iterator[Effect]:
    """Yield that a server gets what the user granted to it, and the server that grants it."""
    oauth = server.values.get("oauth")
    settings = as_object(oauth)
    if oauth is None or oauth is False or settings.get("enabled") is False:
        return
    site, keys = _server_site(server, "oauth", context)
    issuer, secret = settings.get("issuer"), settings.get("client_secret")
    yield site.effect("send", f"your authorization to {address_of(url)}", keys)
    if isinstance(issuer, str):
        yield from site.connection(issuer, (*keys, "issuer"))
        if isinstance(secret, str) and not variables_in(secret):
            subject = f"`client_secret` to {address_of(issuer)}"
            yield site.effect("send", subject, (*keys, "client_secret"))


def _start(server: _Server, command: str, context: Context) -> Iterator[Effect]:
    site, keys = _server_site(server, "command", context)
    cwd, args = server.values.get("cwd"), server.values.get("args")
    command = os.path.expanduser(command)  # noqa: PTH111 - unknown users stay as they are
    if os.sep in command:
        command = str(site.directory / command)
    start = context.given.cwd
    if isinstance(cwd, str):
        start = placed(cwd, server.layers["cwd"].directory) or start
    env = {name: _value_text(value) for name, value in as_object(server.values.get("env")).items()}
    yield from site.program(
        command,
        [_value_text(one) for one in as_list(args)],
        keys,
        cwd=start,
        env=env,
    )
    if isinstance(cwd, str):
        cwd_site, cwd_keys = _server_site(server, "cwd", context)
        yield from cwd_site.sends(cwd, cwd_keys, to=f"server `{server.name}`")


def _part_of_start(server: _Server, context: Context) -> Iterator[Effect]:
    """Yield what a file adds to a server whose program another set or the user names."""
    parts = [key for key in _PROGRAM_KEYS if server.values.get(key)]
    if not parts:
        return
    site, keys = _server_site(server, parts[0], context)
    env = as_object(server.values.get("env"))
    shown = ", ".join([*(one for one in parts if one != "env"), *env])
    yield site.effect("run", f"server `{server.name}` with {shown}", keys)
    for part in parts:
        part_site, part_keys = _server_site(server, part, context)
        for at, text in texts_in(server.values[part], part_keys):
            yield from part_site.sends(text, at, to=f"server `{server.name}`")


def _rest_of_server(server: _Server, context: Context) -> Iterator[Effect]:
    values = server.values
    roots = values.get("roots")
    for index, one in enumerate(as_list(roots)):
        uri = one.get("uri") if isinstance(one, Mapping) else one
        if isinstance(uri, str):
            site, keys = _server_site(server, "roots", context)
            yield from site.reads(uri, (*keys, index), folder=True)
    if as_object(values.get("sampling")):
        yield from _sampling(server, context)
    for name, bound in _SERVER_BOUNDS.items():
        if is_weaker(values.get(name), bound):
            site, keys = _server_site(server, name, context)
            yield site.eases(name, bound, values.get(name), keys)
    for key, value in values.items():
        if key not in {"url", "headers", "sampling", *_PROGRAM_KEYS}:
            site, keys = _server_site(server, key, context)
            for at, text in texts_in(value, keys):
                yield from site.sends(text, at, to=f"server `{server.name}`")


def _sampling(server: _Server, context: Context) -> Iterator[Effect]:
    sampling = as_object(server.values.get("sampling"))
    site, keys = _server_site(server, "sampling", context)
    model, most = sampling.get("model"), sampling.get("max_answers")
    if isinstance(model, str):
        yield from site.model(model, (*keys, "model"), context.given.cwd)
        to, host = destination(context, model)
        yield from site.sends(model, (*keys, "model"), to=to, host=host)
    if is_weaker(most, SAMPLING_ANSWERS):
        setting = "sampling.max_answers"
        yield site.eases(setting, SAMPLING_ANSWERS, most, (*keys, "max_answers"))


def _server_site(server: _Server, key: str, context: Context) -> tuple[Site, Keys]:
    """Return the part of the file that has a key of a server, and where the key is."""
    layer = server.layers.get(key) or next(iter(server.layers.values()))
    site = site_of(layer, Holder("server", server.name), context)
    return site, ("mcp", "servers", server.name, key)


def site_of(layer: FileLayer, holder: Holder, context: Context) -> Site:
    """Return a part of a configuration or test file."""
    place = layer.directory / PurePath(layer.source.path).name
    name = context.root.name(place)
    return Site(context, holder, name, layer.directory, partial(_line, layer))


def _line(layer: FileLayer, keys: Keys, near: str) -> int | None:
    del near
    return layer.span(keys, key=True).start.line


def _provider_place(name: str, context: Context) -> tuple[str, str]:
    """Return where requests to a provider go with the configuration of the set."""
    url = context.base_urls.get(name)
    if url is not None:
        address = address_of(url)
        return str(address), address.host if address.scheme else ""
    hosts = PROVIDERS[name].hosts
    if hosts and "*" not in hosts[0]:
        return f"https://{hosts[0]}", hosts[0]
    return PROVIDERS[name].label, ""


def _servers(layer: FileLayer) -> Mapping[str, JsonValue]:
    return as_object(as_object(as_object(layer.document.value).get("mcp")).get("servers"))


def _joined(lower: JsonValue, upper: JsonValue) -> JsonValue:
    """Merge one value over another as the configuration does: mappings key by key."""
    if isinstance(lower, Mapping) and isinstance(upper, Mapping):
        return {**lower, **{key: _joined(lower.get(key), one) for key, one in upper.items()}}
    return upper


def _value_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else str(value)


_SECTIONS: Final[Mapping[str, Callable[[_Layer, str, JsonValue], Iterator[Effect]]]] = {
    "default_model": _Layer.default_model,
    "model_aliases": _Layer.model_aliases,
    "local": _Layer.local,
    "request_params": _Layer.request_params,
    "shell": _Layer.shell,
    "sessions": _Layer.sessions,
    "temporal": _Layer.temporal,
    "skills": _Layer.skills,
    "guide": _Layer.guide,
}
_SENDING: Final = frozenset({"request_params", "sessions"})
