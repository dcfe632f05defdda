"""The section `trust`: what a person allows found projects without being asked.

It counts in the configuration of the home and in `/etc/fast-agent/trust.yaml` only.
"""

from __future__ import annotations

from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from fast_agent.schema.kinds import Entry, Flag, ListOf, MapOf, PathText, Record, Text
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def _none() -> Mapping[str, str]:
    return MappingProxyType({})


@frozen(kw_only=True)
class DenySettings:
    """What no user may allow.

    Args:
        hosts: Host names, exact or `*.name`.
        commands: Whole command lines.
        variables: Names of variables that are never sent.
    """

    hosts: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()


@frozen(kw_only=True)
class TrustSettings:
    """The section `trust`.

    Args:
        own: Directories whose contents count as given.
        hosts: Hosts that may be connected to over https, exact or `*.name`.
        commands: Whole command lines that may be run, compared word by word.
        variables: The host each variable may be sent to, by its name.
        deny: What no user may allow.
        ask: Whether a person may be asked at all.
    """

    own: tuple[Path, ...] = ()
    hosts: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=_none, hash=False)
    deny: DenySettings = DenySettings()
    ask: bool = True


NO_TRUST: Final = TrustSettings()
"""The section of someone who has none."""

_NAMES: Final = ListOf(Text())
TRUST: Final = Record(
    entries=(
        Entry("own", ListOf(PathText()), "directories whose contents count as given", effects=()),
        Entry(
            "hosts",
            _NAMES,
            "hosts found sets may connect to, exact or `*.name`, over https",
            effects=(),
        ),
        Entry(
            "commands",
            _NAMES,
            "command lines found sets may run, compared word by word",
            effects=(),
        ),
        Entry("variables", MapOf(Text()), "the host each variable may be sent to", effects=()),
        Entry(
            "deny",
            Record(
                entries=(
                    Entry("hosts", _NAMES, "hosts that may never be allowed", effects=()),
                    Entry(
                        "commands", _NAMES, "command lines that may never be allowed", effects=()
                    ),
                    Entry("variables", _NAMES, "variables that may never be sent", effects=()),
                ),
                build=DenySettings,
            ),
            "what may never be allowed, not even by `--trust`",
            effects=(),
        ),
        Entry("ask", Flag(), "whether a person may be asked; false answers no", effects=()),
    ),
    build=TrustSettings,
)
"""The section `trust`; it counts in the home and in `/etc/fast-agent/trust.yaml` only."""
