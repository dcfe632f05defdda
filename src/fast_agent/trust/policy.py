"""Policies: what the home and the machine allow or deny found sets without a question."""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fast_agent.config.fields import NO_TRUST, TRUST, DenySettings
from fast_agent.config.layer import LayerReader, read_layer
from fast_agent.errors import ConfigError
from fast_agent.schema.reader import built
from fast_agent.text.frozen import frozen
from fast_agent.trust.address import fits_host

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fast_agent.config.fields import TrustSettings
    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.trust.effect import Effect

MACHINE_FILE: Final = Path("/etc/fast-agent/trust.yaml")
"""The policy of the machine: only root may write to it."""

DIGESTS_VARIABLE: Final = "FAST_AGENT_TRUST"
"""Environment variable with digests of sets that are approved for this run, with commas."""

STARTED_VARIABLE: Final = "FAST_AGENT_STARTED_BY"
"""Mark on every process the product starts: under it nothing can be approved (TR-A7)."""

OPEN_DIRECTORIES: Final = ("tmp", "var/tmp", "dev/shm")
"""Directories open to all users, below `/`."""


@frozen
class Policy:
    """What is allowed and denied without a question.

    Args:
        home: The section `trust` of the home.
        machine: That of the machine; it wins.
        digests: Digests of sets approved for this run.
        everything: Whether `--trust` was given.
    """

    home: TrustSettings = NO_TRUST
    machine: TrustSettings = NO_TRUST
    digests: frozenset[str] = frozenset()
    everything: bool = False

    @property
    def may_ask(self) -> bool:
        """Whether a user may be asked."""
        return self.home.ask and self.machine.ask

    @property
    def has_denials(self) -> bool:
        """Whether anything is denied."""
        return any(one.deny != DenySettings() for one in (self.machine, self.home))

    def denies(self, effect: Effect) -> bool:
        """Return whether an effect is denied, even if approved."""
        # Rules speak of terms.
        return bool(effect.terms) and any(_denies(one, effect) for one in (self.machine, self.home))

    def allows(self, effect: Effect) -> bool:
        """Return whether an effect needs no question: `--trust`, or an entry that fits.

        No entry lets a shell, a write, a use or a provider's key for another host pass: these have
        no terms.
        """
        if self.denies(effect):
            return False
        if self.everything:
            return effect.refusal is None
        if effect.refusal is not None or not effect.terms:
            return False
        return any(_allows(one, effect) for one in (self.machine, self.home))

    def owns(self, root: Path) -> bool:
        """Return whether what a directory holds counts as given.

        `own` does not cover repositories nested in it, since another user may have written them.

        Args:
            root: A directory without links.
        """
        return any(
            _reaches(Path(os.path.realpath(own)), root)
            for one in (self.machine, self.home)
            for own in one.own
        )


def read_policy(
    home_file: Path | None,
    environ: Mapping[str, str],
    *,
    everything: bool = False,
    machine_file: Path = MACHINE_FILE,
) -> Policy:
    """Read the policies of this run.

    Args:
        home_file: The configuration of the home; None where there is none, or where the home is
            not the user's own.
        environ: The environment.
        everything: Whether `--trust` was given.
        machine_file: The policy of the machine.

    Raises:
        ConfigError: A policy is wrong, `FAST_AGENT_TRUST` holds something else than digests, or a
            process that the product started tries to approve.
    """
    digests = _digests(environ.get(DIGESTS_VARIABLE, ""))
    if environ.get(STARTED_VARIABLE) and (digests or everything):
        raise ConfigError(
            "nothing can be approved here: this process was started by an agent or its server",
            hint="approve it at a terminal of your own with `fast-agent trust`",
        )
    home = NO_TRUST if home_file is None else _section(home_file, environ, key="trust")
    machine = NO_TRUST
    if _is_roots(machine_file):
        machine = _section(machine_file, {}, key=None)
    for own in (*home.own, *machine.own):
        check_own(own, environ)
    return Policy(home, machine, digests, everything)


def marked(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process the product starts.

    It carries the mark under which nothing can be approved, and no approval of this run.

    Args:
        environ: The environment the process would get.
    """
    kept = {name: value for name, value in environ.items() if name != DIGESTS_VARIABLE}
    return {**kept, STARTED_VARIABLE: "fast-agent"}


def check_own(folder: Path, environ: Mapping[str, str]) -> None:
    """Refuse a directory that is too wide to be declared one's own.

    Raises:
        ConfigError: It is the home or above it, `/`, or writable by all users.
    """
    from fast_agent.config.home import user_home

    place = Path(os.path.realpath(folder))
    home = Path(os.path.realpath(user_home(environ)))
    reason = None
    if home == place or home.is_relative_to(place):
        reason = "it is your home directory, or holds it"
    elif any(place == Path("/", one) for one in OPEN_DIRECTORIES) or _is_open(place):
        reason = "all users may write to it"
    if reason is not None:
        raise ConfigError(
            f"`{folder}` cannot be your own as a whole: {reason}",
            hint="name the directory of one project, or one that holds only projects of yours",
        )


def own_text(text: str, own: Iterable[Path]) -> str:
    """Return the text of a configuration with other directories as `trust.own`.

    Args:
        text: The text of the configuration of the home; empty where there is none.
        own: All directories, absolute.

    Raises:
        ConfigError: The text cannot be changed safely.
    """
    from fast_agent.config.edit import with_setting

    return with_setting(text, "trust", "own", [str(one) for one in own])


def _digests(text: str) -> frozenset[str]:
    digests = frozenset(filter(None, (one.strip() for one in text.split(","))))
    for one in digests:
        algorithm, _, value = one.partition(":")
        if algorithm != "sha256" or len(value) != 64 or set(value) - set("0123456789abcdef"):
            raise ConfigError(
                f"`{DIGESTS_VARIABLE}` holds something that is not a digest",
                hint="it takes digests like `sha256:9f2c…`, as `fast-agent trust --format json` "
                "shows them, with commas between",
            )
    return digests


def _section(file: Path, environ: Mapping[str, str], *, key: str | None) -> TrustSettings:
    """Read a policy: a key of a file, or a whole file."""
    problems: list[Diagnostic] = []
    layer = read_layer(file, str(file), problems)
    if layer is None:
        raise _policy_error(problems)
    value = layer.document.value
    part = (value.get(key) if isinstance(value, dict) else None) if key else value
    if part is None:
        return NO_TRUST
    reader = LayerReader(layer, layer.directory, environ)
    tree = reader.tree(TRUST, part)
    if reader.problems:
        raise _policy_error(reader.problems)
    settings: TrustSettings = built(TRUST, tree)
    return settings


def _policy_error(problems: list[Diagnostic]) -> ConfigError:
    first = problems[0]
    return ConfigError(f"`{first.path}`: {first.message}", hint=first.hint, diagnostics=problems)


def _is_roots(file: Path) -> bool:
    """Return whether a file, and the directory it is in, can be changed by root alone."""
    try:
        places = (file.lstat(), file.parent.stat())
    except OSError:
        return False
    return stat.S_ISREG(places[0].st_mode) and all(
        one.st_uid == 0 and not one.st_mode & 0o022 for one in places
    )


def _is_open(place: Path) -> bool:
    try:
        return bool(place.stat().st_mode & 0o002)
    except OSError:
        return False


def _reaches(own: Path, root: Path) -> bool:
    if not root.is_relative_to(own):
        return False
    folder = root
    while folder != own:
        if (folder / ".git").exists():
            return False
        folder = folder.parent
    return True


def _allows(settings: TrustSettings, effect: Effect) -> bool:
    match effect.kind, effect.terms:
        case "run", terms:
            return any(_words(line) == terms for line in settings.commands)
        case "connect", ("https", host, _):
            return any(fits_host(one, host) for one in settings.hosts)
        case "send", (name, host):
            allowed = settings.variables.get(name)
            return allowed is not None and fits_host(allowed, host)
        case _:
            return False


def _denies(settings: TrustSettings, effect: Effect) -> bool:
    deny = settings.deny
    match effect.kind, effect.terms:
        case "run", terms:
            return any(_words(line) == _without_variables(terms) for line in deny.commands)
        case "connect", (_, host, _):
            return any(fits_host(one, host) for one in deny.hosts)
        case "send", (name, host):
            return name in deny.variables or any(fits_host(one, host) for one in deny.hosts)
        case _:
            return False


def _without_variables(terms: tuple[str, ...]) -> tuple[str, ...]:
    """Drop leading `NAME=value`: a variable does not get a command past its denial."""
    at = 0
    while at < len(terms) and terms[at].partition("=")[0].isidentifier() and "=" in terms[at]:
        at += 1
    return terms[at:]


def _words(line: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(line))
    except ValueError:
        return (line,)
