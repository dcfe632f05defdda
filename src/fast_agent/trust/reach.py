"""Reach: effects that cards and configuration share, worked out from a text as it is written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from fast_agent.text.environment import variables_in
from fast_agent.trust.effect import Effect
from fast_agent.trust.programs import digest_of, examine_program

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fast_agent.config.providers import Provider
    from fast_agent.trust.effect import EffectKind, Holder
    from fast_agent.trust.origin import Root

NATIVE_CODE: Final = "native code of this program reads it"
ANY_COMMAND: Final = "any command the model chooses"

_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Reach:
    """Makes the effects of one part of a set.

    Args:
        root: The root of the set.
        holder: What brings the effects, and is left out without them.
        path: Its file, relative to the root.
        directory: Where its relative paths start, absolute.
        search_path: The `PATH` of the person.
    """

    root: Root
    holder: Holder
    path: str
    directory: Path
    search_path: str = ""

    def effect(
        self,
        kind: EffectKind,
        subject: str,
        line: int | None,
        *,
        files: Mapping[str, str] | None = None,
        terms: tuple[str, ...] = (),
        notes: tuple[str, ...] = (),
        refusal: str | None = None,
    ) -> Effect:
        """Make an effect of this part."""
        return Effect(
            kind, subject, self.holder, self.path, line, files or {}, terms, notes, refusal
        )

    def connect(self, url: str, line: int | None) -> Effect:
        """Make the effect of an address; a variable in it stays a name."""
        origin, terms = split_origin(url)
        return self.effect("connect", origin, line, terms=terms, notes=_nearness(terms))

    def sends(self, text: str, to: str, line: int | None) -> Iterator[Effect]:
        """Yield the effect of each variable in a text.

        Args:
            text: As it is written.
            to: Where the value goes: an address, a program, a field.
            line: The line of the text.
        """
        host = split_origin(to)[1][1:2] if "://" in to else ()
        for name in variables_in(text):
            yield self.effect("send", f"{name} to {to}", line, terms=(name, *host) if host else ())

    def sends_key(self, provider: Provider, url: str, line: int | None) -> Iterator[Effect]:
        """Yield the effect of sending the person's key of a provider to another host.

        No policy lets it pass, so it has no terms.
        """
        origin, terms = split_origin(url)
        if terms and any(fits_host(own, terms[1]) for own in provider.hosts):
            return
        yield self.effect("send", f"your {provider.label} key to {origin}", line)

    def read(self, file: Path, line: int | None) -> Iterator[Effect]:
        """Yield the effect of reading a file or directory, if it is not free."""
        if not self.root.is_free(file):
            yield self.effect("read", self.root.name(file), line)

    def load(self, file: Path, line: int | None) -> Effect:
        """Make the effect of loading a model file."""
        name = self.root.name(file)
        return self.effect(
            "run", f"model file {name}", line, files={name: digest_of(file)}, notes=(NATIVE_CODE,)
        )

    def start(
        self,
        command: str,
        args: Sequence[str],
        line: int | None,
        *,
        cwd: Path,
        env: Mapping[str, str],
    ) -> Effect:
        """Make the effect of starting a program."""
        program = examine_program(
            command, args, cwd=cwd, root=self.root.path, env=env, path=self.search_path
        )
        variables = (f"{name}={value}" for name, value in sorted(env.items()))
        return self.effect(
            "run",
            program.line,
            line,
            files=program.files,
            terms=(*variables, command, *args),
            notes=program.notes,
            refusal=program.refusal,
        )

    def model(self, spec: str, line: int | None) -> Iterator[Effect]:
        """Yield the effects of a model spec: the files its query names."""
        head, _, query = spec.partition("?")
        provider = head.strip().partition(".")[0]
        for pair in query.split("&"):
            key, _, value = pair.partition("=")
            if not value or key not in {"path", "file"}:
                continue
            file = self.directory / Path(_decoded(value)).expanduser()
            if key == "path" and provider == "local":
                yield self.load(file, line)
            elif key == "file":
                yield from self.read(file, line)

    def eases(
        self, setting: str, old: float | None, new: object, line: int | None
    ) -> Iterator[Effect]:
        """Yield the effect of a weaker bound.

        Args:
            setting: Its name.
            old: The bound of the person or the default; None is no bound, which nothing weakens.
            new: The bound of the set.
            line: Its line.
        """
        if old is None or isinstance(new, bool) or not isinstance(new, int | float) or new <= old:
            return
        yield self.effect("ease", f"{setting}: {old:g} → {new:g}", line)


def split_origin(url: str) -> tuple[str, tuple[str, ...]]:
    """Return how an approval names an address, and its scheme, host and port.

    Args:
        url: As it is written; a variable in its host leaves it without parts.
    """
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        return url, ()
    usual = _PORTS.get(parts.scheme)
    if usual is None or not host or variables_in(parts.netloc):
        return url, ()
    shown = f"[{host}]" if ":" in host else host
    where = f":{port}" if port not in {None, usual} else ""
    return f"{parts.scheme}://{shown}{where}", (parts.scheme, host, str(port or usual))


def fits_host(pattern: str, host: str) -> bool:
    """Return whether a host is the one named, or one below `*.name`."""
    pattern, host = pattern.lower().rstrip("."), host.lower().rstrip(".")
    if pattern.startswith("*."):
        return host.endswith(pattern[1:]) and len(host) > len(pattern) - 1
    return host == pattern


def _nearness(terms: tuple[str, ...]) -> tuple[str, ...]:
    """Return the note for an address on this machine or in a private network."""
    if not terms:
        return ()
    from ipaddress import ip_address

    host = terms[1]
    if host == "localhost" or host.endswith(".localhost"):
        return ("this machine",)
    try:
        address = ip_address(host)
    except ValueError:
        return ("private network",) if host.endswith((".local", ".internal", ".lan")) else ()
    if address.is_loopback or address.is_unspecified:
        return ("this machine",)
    return ("private network",) if address.is_private or address.is_link_local else ()


def _decoded(text: str) -> str:
    if "%" not in text:
        return text
    from urllib.parse import unquote

    return unquote(text)
