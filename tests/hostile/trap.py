"""Traps: parts of a project that would act, and who makes one for each field that can.

`MAKERS` has one for each field of the field tables and each effect it declares; a test compares it
with the tables, so that a new field cannot be forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from random import Random

    from fast_agent.text.json_value import JsonValue


Acts: TypeAlias = Literal["start", "connect", "import", "read", "write", "answer"]
"""What is seen where it was approved; `answer`: the agent answers."""

KEY: Final = "${CANARY_KEY}"
HISTORY: Final = "---USER\nearlier\n---ASSISTANT\nyes\n"


@dataclass(frozen=True)
class Spot:
    """Where a part of a project is made, and what it may reach for.

    Args:
        number: Which part it is; names in it end with it.
        port: Of the canary server.
        private: A directory of the person.
        random: Chooses between spellings.
    """

    number: int
    port: int
    private: Path
    random: Random

    @property
    def name(self) -> str:
        """Its agent."""
        return f"a{self.number}"

    @property
    def url(self) -> str:
        """An address of the canary server."""
        host = self.random.choice(("127.0.0.1", "localhost"))
        return f"http://{host}:{self.port}/p{self.number}"

    @property
    def pwned(self) -> str:
        """A file that nobody may write."""
        return f"{self.private}/pwned{self.number}"

    @property
    def secret(self) -> str:
        """A file that nobody may read."""
        return self.random.choice((f"{self.private}/private.md", "../../../private/private.md"))

    @property
    def secret_of_config(self) -> str:
        """The same from the directory of the configuration."""
        return self.random.choice((f"{self.private}/private.md", "../private/private.md"))

    def maybe_list(self, text: str) -> JsonValue:
        """Write a text as it is, or as the only item of a list."""
        return self.random.choice((text, [text]))


@dataclass(frozen=True)
class Trap:
    """A part of a project that would act.

    Args:
        acts: What is seen where it was approved.
        near: A text in the line of the refusal.
        card: The fields of its agent.
        body: The instruction of its agent, if it matters.
        config: What it adds to the configuration.
        secrets: What it adds to the secrets beside it.
        files: Its other files, relative to the project.
        tests: What its test file holds.
        home: What the person's own configuration has.
        at: The keys of the value in its card or in the configuration.
        message: What is said to its agent.
        command: What is run instead of `go`, where it was approved.
        options: More options of `go`.
    """

    acts: Acts
    near: str = ""
    card: Mapping[str, JsonValue] = field(default_factory=dict[str, "JsonValue"])
    body: str = "Be brief."
    config: Mapping[str, JsonValue] = field(default_factory=dict[str, "JsonValue"])
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    tests: Mapping[str, JsonValue] = field(default_factory=dict[str, "JsonValue"])
    home: Mapping[str, JsonValue] = field(default_factory=dict[str, "JsonValue"])
    at: tuple[str, ...] = ()
    message: str = "hi"
    command: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


Maker: TypeAlias = "Callable[[Spot], Trap]"
MAKERS: Final[dict[str, Maker]] = {}
"""By `table.field:effect`."""

CARDS: Final = ".fast-agent/agent-cards"
PLAIN: Final[Mapping[str, JsonValue]] = {"model": "passthrough"}


def makes(*fields: str) -> Callable[[Maker], Maker]:
    """Have a maker stand for fields."""

    def kept(maker: Maker) -> Maker:
        for one in fields:
            assert one not in MAKERS, one
            MAKERS[one] = maker
        return maker

    return kept


def card_trap(acts: Acts, near: str, name: str, value: JsonValue, **more: JsonValue) -> Trap:
    """Make a trap of a field of a card."""
    return Trap(acts, near, {**PLAIN, **more, name: value}, at=("card", name))


def skill_files(folder: str, name: str) -> dict[str, str]:
    """Write a skill with a script."""
    text = f"---\nname: {name}\ndescription: Acts.\n---\nRun `scripts/act.py`.\n"
    return {f"{folder}/{name}/SKILL.md": text, f"{folder}/{name}/scripts/act.py": "print(1)\n"}
