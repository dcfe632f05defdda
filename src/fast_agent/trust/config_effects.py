"""Effects of a found configuration: what each of its settings would do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fast_agent.config.home import from_home
from fast_agent.config.providers import PROVIDERS
from fast_agent.trust.effect import Effect, Holder
from fast_agent.trust.reach import Reach

if TYPE_CHECKING:
    from fast_agent.config.layer import FileLayer, Keys
    from fast_agent.config.settings import Settings
    from fast_agent.text.json_value import JsonValue
    from fast_agent.trust.origin import Root

DEFAULT_BOUNDS: Final[Mapping[Keys, float]] = {
    ("shell", "timeout_seconds"): 120,
    ("shell", "max_output_bytes"): 32 * 1024,
    ("sessions", "disk_seconds"): 1,
    ("request_params", "max_iterations"): 99,
}
"""The bounds of someone who set none, by setting; a larger one is weaker."""

_CALL_SECONDS: Final = 3600
_ANSWERS: Final = 20


class ConfigEffects:
    """Works out the effects of one configuration file from its text.

    Args:
        layer: The file; `${NAME}` stays as it is.
        root: The root of its set.
        environ: The environment, for the home in `~/` and the `PATH`.
        person: The person's own settings, whose bounds it may not weaken; None has none.
    """

    def __init__(
        self,
        layer: FileLayer,
        root: Root,
        environ: Mapping[str, str],
        person: Settings | None = None,
    ) -> None:
        self._layer = layer
        self._root = root
        self._environ = environ
        self._person = person
        self._value = _mapping(layer.document.value)

    def __iter__(self) -> Iterator[Effect]:
        """Yield its effects in the order of the file."""
        for key, value in self._value.items():
            if key == "mcp":
                for name, server in _mapping(_mapping(value).get("servers")).items():
                    yield from self._server(name, _mapping(server))
            elif key in PROVIDERS:
                yield from self._provider(key, _mapping(value))
            else:
                yield from self._setting(key, value)

    def _reach(self, holder: Holder) -> Reach:
        return Reach(
            self._root,
            holder,
            self._root.name(self._layer.directory / Path(self._layer.source.path).name),
            self._layer.directory,
            self._environ.get("PATH", ""),
        )

    def _line(self, *keys: str | int) -> int:
        return self._layer.document.span_of(keys).start.line

    def _place(self, text: str) -> Path:
        return self._layer.directory / from_home(text, self._environ)

    def _server(self, name: str, server: Mapping[str, JsonValue]) -> Iterator[Effect]:
        if server.get("enabled") is False:
            return
        reach, at = self._reach(Holder("server", name)), ("mcp", "servers", name)
        url, command = server.get("url"), server.get("command")
        to = f"the program of server `{name}`"
        if isinstance(url, str):
            yield reach.connect(url, self._line(*at, "url"))
            to = reach.connect(url, None).subject
            for header in _mapping(server.get("headers")):
                yield reach.effect(
                    "send", f"header `{header}` to {to}", self._line(*at, "headers", header)
                )
        if isinstance(command, str):
            yield self._start(reach, command, server, self._line(*at, "command"))
        for index, one in enumerate(_items(server.get("roots"))):
            uri = one.get("uri") if isinstance(one, Mapping) else one
            if isinstance(uri, str):
                yield from self._root_read(reach, uri, self._line(*at, "roots", index))
        sampling, line = _mapping(server.get("sampling")), self._line(*at)
        model, most = sampling.get("model"), sampling.get("max_answers")
        if isinstance(model, str):
            yield from reach.model(model, self._line(*at, "sampling", "model"))
        yield from reach.eases("sampling.max_answers", _ANSWERS, most, line)
        seconds = server.get("call_timeout_seconds")
        yield from reach.eases("call_timeout_seconds", _CALL_SECONDS, seconds, line)
        yield from self._variables(reach, server, at, to)

    def _start(
        self, reach: Reach, command: str, server: Mapping[str, JsonValue], line: int
    ) -> Effect:
        cwd = server.get("cwd")
        if "/" in command:
            command = str(self._place(command))
        return reach.start(
            command,
            [str(one) for one in _items(server.get("args"))],
            line,
            cwd=self._place(cwd) if isinstance(cwd, str) else self._layer.directory,
            env={key: str(one) for key, one in _mapping(server.get("env")).items()},
        )

    def _root_read(self, reach: Reach, uri: str, line: int) -> Iterator[Effect]:
        if uri.lower().startswith("file://"):
            from urllib.parse import unquote, urlsplit

            yield from reach.read(Path(unquote(urlsplit(uri).path)), line)
        elif "://" not in uri:
            yield from reach.read(self._place(uri), line)

    def _provider(self, name: str, section: Mapping[str, JsonValue]) -> Iterator[Effect]:
        provider = PROVIDERS[name]
        url, key = section.get("base_url"), section.get("api_key")
        host = provider.hosts[0] if provider.hosts else f"the host of `{name}`"
        to = f"https://{host}" if provider.hosts else host
        if isinstance(url, str):
            reach, line = (
                self._reach(Holder("setting", f"{name}.base_url")),
                self._line(name, "base_url"),
            )
            yield reach.connect(url, line)
            to = reach.connect(url, None).subject
            yield from reach.sends_key(provider, url, line)
            yield from reach.sends(url, to, line)
        if isinstance(key, str):
            reach, line = (
                self._reach(Holder("setting", f"{name}.api_key")),
                self._line(name, "api_key"),
            )
            yield reach.effect("send", f"`{name}.api_key` to {to}", line)
            yield from reach.sends(key, to, line)
        rest = {one: value for one, value in section.items() if one not in {"base_url", "api_key"}}
        yield from self._variables(self._reach(Holder("setting", name)), rest, (name,), to)

    def _setting(self, key: str, value: JsonValue) -> Iterator[Effect]:
        reach = self._reach(Holder("setting", key))
        if key == "default_model" and isinstance(value, str):
            yield from reach.model(value, self._line(key))
        inner = _mapping(value)
        work = {
            "model_aliases": self._aliases,
            "local": self._local,
            "request_params": self._params,
            "skills": self._skills,
            "guide": self._guide,
        }.get(key)
        if work is not None:
            yield from work(reach, inner)
        yield from self._bounds(reach, key, inner)
        yield from self._variables(reach, value, (key,), f"`{key}`")

    def _aliases(self, reach: Reach, section: Mapping[str, JsonValue]) -> Iterator[Effect]:
        for name, spec in section.items():
            if isinstance(spec, str):
                yield from reach.model(spec, self._line("model_aliases", name))

    def _params(self, reach: Reach, section: Mapping[str, JsonValue]) -> Iterator[Effect]:
        body = _mapping(section.get("extra_body", section.get("extraBody")))
        if body:
            names = ", ".join(f"`{name}`" for name in body)
            line = self._line("request_params")
            yield reach.effect("send", f"extra_body {names} to every provider", line)

    def _skills(self, reach: Reach, section: Mapping[str, JsonValue]) -> Iterator[Effect]:
        for index, one in enumerate(_items(section.get("directories"))):
            if isinstance(one, str):
                line = self._line("skills", "directories", index)
                yield from reach.read(self._place(one), line)

    def _local(self, reach: Reach, section: Mapping[str, JsonValue]) -> Iterator[Effect]:
        path = section.get("path")
        if isinstance(path, str):
            yield reach.load(self._place(path), self._line("local", "path"))
        for name, file in _mapping(section.get("models")).items():
            if isinstance(file, str):
                yield reach.load(self._place(file), self._line("local", "models", name))

    def _guide(self, reach: Reach, section: Mapping[str, JsonValue]) -> Iterator[Effect]:
        docroot = section.get("docroot")
        base = self._place(docroot) if isinstance(docroot, str) else self._layer.directory
        if isinstance(docroot, str):
            yield from reach.read(base, self._line("guide", "docroot"))
        for name, category in _mapping(section.get("categories")).items():
            folder = _mapping(category).get("dir")
            if isinstance(folder, str):
                yield from reach.read(base / folder, self._line("guide", "categories", name))

    def _bounds(self, reach: Reach, key: str, value: Mapping[str, JsonValue]) -> Iterator[Effect]:
        for keys, default in DEFAULT_BOUNDS.items():
            if keys[0] != key:
                continue
            name = str(keys[1])
            own = getattr(getattr(self._person, key, None), name, None)
            old = default if own is None else own
            for spelling in (name, _camel(name)):
                if spelling in value:
                    line = self._line(key, spelling)
                    yield from reach.eases(f"{key}.{name}", old, value[spelling], line)

    def _variables(self, reach: Reach, value: JsonValue, at: Keys, to: str) -> Iterator[Effect]:
        """Yield a `send` for every variable in a value, whatever field it is in."""
        if isinstance(value, str):
            yield from reach.sends(value, to, self._line(*at))
        elif isinstance(value, Mapping):
            for key, inner in value.items():
                yield from self._variables(reach, inner, (*at, key), to)
        elif isinstance(value, Sequence):
            for index, inner in enumerate(value):
                yield from self._variables(reach, inner, (*at, index), to)


def _mapping(value: JsonValue) -> Mapping[str, JsonValue]:
    return value if isinstance(value, Mapping) else {}


def _items(value: JsonValue) -> Sequence[JsonValue]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(one.title() for one in rest)
