"""Short names of models, and the families by which a bare model name finds its provider.

The data is in `aliases.json`; `model_aliases` in the configuration extends and overrides it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, TypedDict, cast

if TYPE_CHECKING:
    from collections.abc import Mapping


class _Data(TypedDict):
    aliases: dict[str, str]
    families: dict[str, list[str]]
    known: list[str]


@dataclass(frozen=True, slots=True)
class ModelNames:
    """What is known of model names.

    Args:
        aliases: Short names and the specs they stand for.
        families: For each provider, patterns of the names that are its own.
        known: Names to suggest for a misspelt one.
    """

    aliases: Mapping[str, str]
    families: Mapping[str, tuple[str, ...]]
    known: tuple[str, ...]

    def provider_of(self, name: str) -> str | None:
        """Find the provider of a bare model name.

        Args:
            name: Such as `o3-mini`.

        Returns:
            Such as `openai`; None where no family fits.
        """
        for provider, patterns in self.families.items():
            if any(fnmatchcase(name, pattern) for pattern in patterns):
                return provider
        return None


@cache
def built_in_names() -> ModelNames:
    """Read the names that come with the program."""
    import json
    from pathlib import Path

    text = Path(__file__).with_name("aliases.json").read_text(encoding="utf-8")
    data = cast("_Data", json.loads(text))
    return ModelNames(
        aliases=MappingProxyType(data["aliases"]),
        families=MappingProxyType(
            {name: tuple(patterns) for name, patterns in data["families"].items()}
        ),
        known=tuple(data["known"]),
    )


def model_aliases(user: Mapping[str, str]) -> Mapping[str, str]:
    """Join the aliases of the configuration to those of the program.

    Args:
        user: `model_aliases` of the configuration; they win.
    """
    return {**built_in_names().aliases, **user}
