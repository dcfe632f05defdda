"""Found sets made of every field that declares an effect: unapproved nothing happens."""

from __future__ import annotations

import json
import os
import re
from random import Random
from typing import TYPE_CHECKING

import pytest
from tests.hostile import traps_of_cards, traps_of_config, traps_of_tests
from tests.hostile.commands import DESK, EVERY_COMMAND, PROMPT
from tests.hostile.project import Project
from tests.hostile.scene import Done, Scene, nothing_happened
from tests.hostile.trap import CARDS, KEY, MAKERS, Spot, Trap

from fast_agent.cards.fields import CARD_TYPES, FIELDS, FIELDS_OF
from fast_agent.config.case_fields import CASE_FILE
from fast_agent.config.fields import SETTINGS
from fast_agent.config.providers import QUERY_KEYS
from fast_agent.config.settings import GUIDE
from fast_agent.resources.skill.frontmatter import SKILL_FIELDS
from fast_agent.schema.kinds import (
    AnyOf,
    FunctionName,
    JsonSchema,
    Kind,
    ListOf,
    MapOf,
    Record,
    Text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.hostile.canary import Canary

    from fast_agent.cards.agent_config import CardType
    from fast_agent.text.json_value import JsonValue


def declared() -> Iterator[str]:
    """Every field that declares an effect, with the effect."""
    for field in FIELDS:
        yield from (f"card.{field.name}:{effect}" for effect in field.effects)
        yield from _inner(f"card.{field.name}", field.kind)
    yield from _inner("config", SETTINGS)
    yield from _inner("guide", GUIDE)
    yield from _inner("case", CASE_FILE)
    for model, keys in QUERY_KEYS.items():
        for name, key in keys.items():
            yield from (f"query.{model}.{name}:{effect}" for effect in key.effects)
    for name, effects in SKILL_FIELDS.items():
        yield from (f"skill.{name}:{effect}" for effect in effects)


def _inner(above: str, kind: Kind) -> Iterator[str]:
    match kind:
        case Record(entries=entries):
            for entry in entries:
                place = f"{above}.{entry.name}"
                yield from (f"{place}:{effect}" for effect in entry.effects)
                yield from _inner(place, entry.kind)
        case ListOf(inner) | MapOf(inner):
            yield from _inner(above, inner)
        case AnyOf(kinds):
            for one in kinds:
                yield from _inner(above, one)
        case _:
            pass


@pytest.mark.spec("TR-E2.1")
def test_every_field_that_declares_an_effect_has_a_maker() -> None:
    wanted = set(declared())
    assert wanted - MAKERS.keys() == set(), "write a maker in `traps_of_….py`"
    assert MAKERS.keys() - wanted == set(), "these declare no such effect"


WITHOUT = {("config", name) for name in ("skills", "guide", "sessions", "temporal")}
"""Settings that are left out of agents that continue without them."""

FIRST = int(os.environ.get("HOSTILE_SEED", "1"))
ROUNDS = int(os.environ.get("HOSTILE_ROUNDS", "25"))
COMMANDS = {
    **EVERY_COMMAND,
    "go": (["go", "-m", "hi"], ""),
    "caller": (["go", "--agent", "caller", "-m", "hi"], ""),
    "prompt": (["acp", "--no-session"], PROMPT),
}

TABLES = (traps_of_cards, traps_of_config, traps_of_tests)
"""Each adds its makers to `MAKERS` when it is imported."""

ALONE = {maker: field for field, maker in MAKERS.items()}
"""Each maker once, with a field it stands for."""


IN_AGENTS = sorted(one for one in ALONE.values() if not one.startswith(("case.", "guide.")))
"""Those that act when an agent is sent a message."""


@pytest.mark.spec("TR-E.generated", "TR-G1.1a", "TR-G1.1b", "TR-G3.2a", "TR-G3.2b", "TR-E.line")
@pytest.mark.parametrize("field", ALONE.values())
def test_a_field_acts_once_it_was_approved_and_not_before(
    tmp_path: Path, canary: Canary, field: str
) -> None:
    scene = Scene.made(tmp_path, canary)
    random = Random(field)
    project = Project({0: MAKERS[field](Spot(0, canary.port, scene.private, random))}, random)
    project.write(scene.project, scene.home)
    trap = project.traps[0]
    go = ["go", "--agent", "a0", "-m", trap.message, *trap.options]
    refused = scene.fork(list(trap.command) or go)
    nothing_happened(scene, refused)
    kind = field.partition(":")[2]
    assert trap.at[0] == "file" or project.lines[0] in refused.stdout + refused.stderr
    assert goes_on(field, trap) == (refused.returncode != 3), refused
    approved = scene.fork(["trust", "--yes"])
    assert approved.returncode == 0, approved.stderr
    # A run may give the set more than `trust` sees: only the digest allows just this.
    records = "--record" in trap.command
    listed = re.sub("(?m)^ {9}", "", refused.stdout) if records else approved.stderr
    assert lists(listed, project, 0, kind)
    environ = {"FAST_AGENT_TRUST": digest_in(refused)} if trap.options or records else {}
    assert acted(scene, trap, scene.fork(list(trap.command) or go, **environ))


@pytest.mark.spec("TR-E.generated", "TR-G1.1a", "TR-G3.1a", "TR-G4.1", "TR-G4.2a", "TR-E.line")
@pytest.mark.parametrize("seed", range(FIRST, FIRST + ROUNDS))
def test_no_combination_acts_before_it_was_approved(
    tmp_path: Path, canary: Canary, seed: int
) -> None:
    print(f"seed {seed}")
    scene = Scene.made(tmp_path, canary)
    random = Random(seed)
    fields = random.sample(IN_AGENTS, random.randint(2, 5))
    spots = [Spot(at, canary.port, scene.private, random) for at in range(len(fields))]
    traps = {spot.number: MAKERS[field](spot) for spot, field in zip(spots, fields, strict=True)}
    project = Project(traps, random)
    project.write(scene.project, scene.home)
    callers(scene, project, random)
    before = scene.files()
    for command in random.sample(sorted(COMMANDS), 2):
        arguments, stdin = COMMANDS[command]
        done = scene.fork(arguments, stdin.replace(DESK, str(scene.project)))
        nothing_happened(scene, done)
        if command in {"go", "caller"} and not all(
            goes_on(fields[number], trap) for number, trap in traps.items()
        ):
            assert (done.returncode, done.stdout) == (3, ""), done.stderr
    options = [*dict.fromkeys(word for trap in project.traps.values() for word in trap.options)]
    environ: dict[str, str] = {}
    for number, trap in project.traps.items():
        refused = scene.fork(["go", "--agent", f"a{number}", "-m", trap.message, *options])
        nothing_happened(scene, refused)
        environ["FAST_AGENT_TRUST"] = digest_in(refused) or environ.get("FAST_AGENT_TRUST", "")
    assert scene.files() == before
    approved = scene.fork(["trust", "--yes"])
    for number in project.traps:
        assert lists(approved.stderr, project, number, fields[number].partition(":")[2])
    number = random.choice([*project.traps])
    trap = project.traps[number]
    go = ["go", "--agent", f"a{number}", "-m", trap.message, *options]
    assert acted(scene, trap, scene.fork(list(trap.command) or go, **environ))


@pytest.mark.spec("TR-E.generated", "TR-G4.2a")
@pytest.mark.parametrize("seed", range(FIRST, FIRST + max(1, ROUNDS // 5)))
def test_runs_and_conversations_of_before_bring_nothing_of_a_project(
    tmp_path: Path, canary: Canary, seed: int
) -> None:
    print(f"seed {seed}")
    scene = Scene.made(tmp_path, canary)
    kept = ["batch", "../own.md", "--input", "../items.jsonl", "--output", "../dumped/kept.jsonl"]
    for arguments in (kept, ["go", "--card", "../own.md", "-m", "hi"]):
        done = scene.fork(arguments)
        assert done.returncode == 0, done.stderr
    (run,) = json.loads(scene.fork(["runs", "list", "--json"]).stdout)
    random = Random(seed)
    fields = random.sample(IN_AGENTS, random.randint(2, 5))
    spots = [Spot(at, canary.port, scene.private, random) for at in range(len(fields))]
    traps = {spot.number: MAKERS[field](spot) for spot, field in zip(spots, fields, strict=True)}
    Project(traps, random).write(scene.project, scene.home)
    for arguments in (
        ["runs", "resume", run["batch"]],
        ["runs", "resume", run["id"], "--from", "1"],
        ["runs", "export", run["id"], "-o", f"{tmp_path}/dumped/run.jsonl"],
        ["runs", "show", run["id"], "--trace"],
        ["go", "--card", "../own.md", "--resume", "-m", "again"],
        ["session", "list"],
        ["usage"],
    ):
        nothing_happened(scene, scene.fork(arguments))


def goes_on(field: str, trap: Trap) -> bool:
    """Return whether an agent answers without what was not approved."""
    kind = field.partition(":")[2]
    # Of a weaker bound the stricter value holds; a server or a test file is not used at all.
    return (
        trap.at[:2] in WITHOUT
        # The offline model searches nothing, so the setting alone is left out.
        or (trap.at[0] == "config" and trap.at[-1] in {"web_fetch", "web_search"})
        or field.startswith("guide.")
        or (kind == "ease" and trap.at[0] != "test" and trap.at[1] != "mcp")
    )


def digest_in(refused: Done) -> str:
    """Return what allows exactly the set that was refused."""
    reported = refused.stdout + refused.stderr
    return reported.partition("FAST_AGENT_TRUST=")[2].partition(" ")[0]


def callers(scene: Scene, project: Project, random: Random) -> None:
    """Write agents that call those of a project, and one that calls these."""
    names = [f"a{number}" for number in project.traps]
    forms = {
        "agents": {"model": "passthrough", "agents": names},
        "chain": {"type": "chain", "sequence": names},
        "parallel": {"type": "parallel", "fan_out": names},
        "maker": {"type": "maker", "worker": names[0]},
        "orchestrator": {"type": "orchestrator", "model": "passthrough", "agents": names},
    }
    lead = forms[random.choice(sorted(forms))]
    write_card(scene.project, "lead", {**lead, "default": True})
    write_card(scene.project, "caller", {"type": "chain", "sequence": ["lead"]})
    write_card(scene.project, "plain", {"model": "passthrough"})


@pytest.mark.spec("TR-E.send")
@pytest.mark.parametrize("card_type", CARD_TYPES)
def test_a_variable_leaves_by_no_field(tmp_path: Path, canary: Canary, card_type: CardType) -> None:
    scene = Scene.made(tmp_path, canary)
    expected: list[str] = []
    for name, field in FIELDS_OF[card_type].items():
        value = with_variable(field.kind)
        if value is None or name in {"type", "name"}:
            continue
        card = f"{card_type.lower().replace('_', '')}{len(expected)}"
        whole: dict[str, JsonValue] = {"type": card_type, "model": "passthrough"}
        if "model" not in FIELDS_OF[card_type]:
            del whole["model"]
        for one in FIELDS_OF[card_type].values():
            if card_type in one.required and one.name != "instruction":
                whole[one.name] = ["plain"] if isinstance(one.kind, ListOf) else "plain"
        write_card(scene.project, card, {**whole, name: value})
        expected.append(f"{CARDS}/{card}.yaml")
    write_card(scene.project, "plain", {"model": "passthrough"})
    for arguments in (["go", "--agent", "plain", "-m", "hi"], ["check"], ["graph"], ["trust"]):
        done = scene.fork(arguments)
        nothing_happened(scene, done)
    listed = scene.fork(["trust", "--format", "json"])
    nothing_happened(scene, listed)
    (found,) = json.loads(listed.stdout)
    assert {one["file"] for one in found["effects"]} == set(expected)
    assert all(one["line"] for one in found["effects"])


def with_variable(kind: Kind) -> JsonValue:
    """Make a value with a variable in it; None where the kind holds no text."""
    match kind:
        case Text():
            return KEY
        case FunctionName():
            return f"x.py:{KEY}"
        case JsonSchema():
            return {"description": KEY}
        case ListOf(inner):
            value = with_variable(inner)
            return None if value is None else [value]
        case MapOf(inner):
            value = with_variable(inner)
            return None if value is None else {"x": value}
        case AnyOf(kinds):
            return next((value for one in kinds if (value := with_variable(one))), None)
        case _:
            return None


def write_card(project: Path, name: str, fields: Mapping[str, JsonValue]) -> None:
    """Write a card in YAML."""
    lines = [f"{key}: {json.dumps(value)}\n" for key, value in fields.items()]
    if "instruction" not in fields:
        lines.append("instruction: Be brief.\n")
    file = project / CARDS / f"{name}.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(lines))


def lists(listed: str, project: Project, number: int, kind: str) -> bool:
    """Check that the effect of a trap is reported, with its file and line."""
    trap, place = project.traps[number], project.lines[number]
    now = ""
    for line in listed.splitlines():
        now = line[2:10].strip() or now
        if now == kind and trap.near in line and line.endswith(f" {place}"):
            return True
    raise AssertionError(f"{kind} {trap.near} {place} is missing in\n{listed}")


def acted(scene: Scene, trap: Trap, done: Done) -> bool:
    """Check that what was approved did happen."""
    kinds = {kind for kind, _ in scene.recorded()}
    reported = f"{done.stdout}{done.stderr}{scene.recorded()}"
    assert "may not" not in done.stderr, reported
    assert "left out" not in done.stderr, reported
    assert trap.acts == "answer" or trap.acts in kinds, reported
    return True
