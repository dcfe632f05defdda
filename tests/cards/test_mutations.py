"""Valid cards broken on purpose: every break is found, on its line, with the right mending.

Each mutation knows the line it broke, and whether one change puts it right; then the proposed fix
must give a card that loads as the original did.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest

from fast_agent.cards.fields import FIELD_NAMED, FIELDS_OF
from fast_agent.cards.fix import fix_text
from fast_agent.cards.load import load_cards
from fast_agent.cards.load_set import check_set
from fast_agent.cards.records import REQUEST_PARAMS
from fast_agent.schema.kinds import Flag, Integer, ListOf, MapOf, OneOf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.cards.card import Card
    from fast_agent.diagnostics.diagnostic import Diagnostic

VALID = Path(__file__).parent.parent / "corpus" / "valid"
SERVERS = ("time", "github", "filesystem")
REFERENCES = ("agents", "sequence", "fan_out", "fan_in", "generator", "evaluator", "worker")
ROUNDS = 2
BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class Original:
    """A valid card: its text without mark and CRLF, and how it is stored."""

    path: Path
    lines: tuple[str, ...]
    mark: str
    line_end: str
    config: AgentConfig

    @property
    def is_markdown(self) -> bool:
        return self.path.suffix.lower() == ".md"

    @property
    def front(self) -> range:
        """The indexes of the lines that are YAML."""
        if not self.is_markdown:
            return range(len(self.lines))
        return range(1, self.lines.index("---", 1))

    def root_keys(self) -> list[tuple[int, str]]:
        """The keys at the root, with their line indexes."""
        found = [(at, re.match(r"([a-z_]+):", self.lines[at])) for at in self.front]
        return [(at, match[1]) for at, match in found if match]

    def encode(self, lines: list[str]) -> bytes:
        return (self.mark + self.line_end.join(lines)).encode()


@dataclass(frozen=True, slots=True)
class Mutation:
    """A broken card.

    Args:
        kind: What was done to it.
        original: The card it was.
        data: The bytes of the file.
        line: The line that is wrong, from 1.
        is_fixable: Whether one change puts it right.
    """

    kind: str
    original: Original
    data: bytes
    line: int
    is_fixable: bool = False


Mutator: TypeAlias = "Callable[[Original, random.Random], Iterator[Mutation]]"


def changed(
    kind: str, original: Original, at: int, line: str | None, *, is_fixable: bool = False
) -> Mutation:
    """Change one line; None takes it out."""
    lines = list(original.lines)
    lines[at : at + 1] = [] if line is None else [line]
    return Mutation(kind, original, original.encode(lines), at + 1, is_fixable)


def inserted(
    kind: str, original: Original, at: int, line: str, *, is_fixable: bool = False
) -> Mutation:
    lines = [*original.lines[:at], line, *original.lines[at:]]
    return Mutation(kind, original, original.encode(lines), at + 1, is_fixable)


def typo(word: str, rng: random.Random) -> str:
    """Misspell a word by one edit."""
    at = rng.randrange(len(word) - 1)
    match rng.choice(["swap", "drop", "double", "other"]):
        case "swap":
            return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        case "drop":
            return word[:at] + word[at + 1 :]
        case "double":
            return word[: at + 1] + word[at:]
        case _:
            return word[:at] + rng.choice("aeiounrst") + word[at + 1 :]


def misspelt(word: str, rng: random.Random, taken: Callable[[str], bool]) -> str | None:
    for _ in range(20):
        wrong = typo(word, rng)
        if wrong != word and not taken(wrong) and wrong.strip() == wrong:
            return wrong
    return None


def key_typos(original: Original, rng: random.Random) -> Iterator[Mutation]:
    for at, key in rng.sample(original.root_keys(), min(3, len(original.root_keys()))):
        wrong = misspelt(key, rng, lambda word: word in FIELD_NAMED) if len(key) > 2 else None
        if wrong is not None:
            line = original.lines[at].replace(key, wrong, 1)
            yield changed("key typo", original, at, line, is_fixable=True)


def nested_key_typos(original: Original, rng: random.Random) -> Iterator[Mutation]:
    nested = {
        *(entry.name for entry in REQUEST_PARAMS.entries),
        *(entry.spelling for entry in REQUEST_PARAMS.entries if entry.spelling),
        *("max_requests", "merge_target", "target", "headers"),
    }
    for at in original.front:
        match = re.search(r"^\s.*?\b([A-Za-z_]+):", original.lines[at])
        if match and match[1] in nested:
            wrong = misspelt(match[1], rng, lambda word: word in nested)
            if wrong is not None:
                line = original.lines[at].replace(f"{match[1]}:", f"{wrong}:", 1)
                yield changed("nested key typo", original, at, line, is_fixable=True)


def quoted_values(original: Original, rng: random.Random) -> Iterator[Mutation]:
    """Booleans and numbers written as text."""
    for at, key in original.root_keys():
        match = re.fullmatch(r"\w+: (true|false|-?\d+)", original.lines[at])
        if match:
            quote = rng.choice("'\"")
            line = f"{key}: {quote}{match[1]}{quote}"
            yield changed("quoted value", original, at, line, is_fixable=True)
            if match[1] in {"true", "false"}:
                word = {"true": ["yes", "on", "True!"], "false": ["no", "off", "0"]}[match[1]]
                yield changed("wrong boolean", original, at, f"{key}: {rng.choice(word)}")


def wrong_types(original: Original, rng: random.Random) -> Iterator[Mutation]:
    wrong: dict[type, list[str]] = {
        Flag: ["maybe", "1", "[true]", "{a: true}"],
        Integer: ["two", "1.5", "[3]", "true"],
        ListOf: ["{a: b}", "3", "true"],
        MapOf: ["[a]", "text", "4"],
        OneOf: ["3", "[a]", "{a: b}"],
    }
    for at, key in original.root_keys():
        field = FIELDS_OF[original.config.type].get(key)
        plain = re.fullmatch(r"\w+: \S.*", original.lines[at])
        if field is None or not plain or original.lines[at].endswith(("|", ">")) or key == "type":
            continue
        values = wrong.get(type(field.kind), ["[a, b]", "{a: b}", "3.5"])
        if key in {"skills", "tool_hooks", "k", "model"}:
            values = ["{a: {b: c}}", "true"]
        yield changed("wrong type", original, at, f"{key}: {rng.choice(values)}")


def duplicate_keys(original: Original, rng: random.Random) -> Iterator[Mutation]:
    for at, key in rng.sample(original.root_keys(), min(2, len(original.root_keys()))):
        ends = [other for other, _ in original.root_keys() if other > at] or [original.front.stop]
        line = original.lines[at] if ": " in original.lines[at] else f"{key}: null"
        if not line.endswith(("|", ">")):
            yield inserted("duplicate key", original, min(ends), line)


def unclosed_frontmatter(original: Original, rng: random.Random) -> Iterator[Mutation]:
    if original.is_markdown:
        lines = list(original.lines)
        del lines[original.front.stop]
        yield Mutation("unclosed frontmatter", original, original.encode(lines), 1)
        fence = rng.choice(["--- ", "---\t", "---  "])
        at = rng.choice([0, original.front.stop])
        yield changed("blanks behind a fence", original, at, fence, is_fixable=True)


def toml_fences(original: Original, _rng: random.Random) -> Iterator[Mutation]:
    if original.is_markdown:
        lines = list(original.lines)
        lines[0] = lines[original.front.stop] = "+++"
        yield Mutation("TOML fence", original, original.encode(lines), 1)


def broken_references(original: Original, rng: random.Random) -> Iterator[Mutation]:
    names = sorted({name for key in REFERENCES for name in children(original.config, key)})
    known = {card.config.name for card in load_cards([VALID]).cards}
    field = None
    for at in original.front:
        line = original.lines[at]
        field = line.split(":")[0] if re.match(r"\w+:", line) else field
        for name in names:
            if field not in REFERENCES or not re.search(rf"[-:\[,] ?{re.escape(name)}\b", line):
                continue
            wrong = misspelt(name, rng, lambda word: word in known)
            if wrong is not None:
                broken = re.sub(
                    rf"(?<=[-:\[,] ){re.escape(name)}\b|(?<=\[){re.escape(name)}\b",
                    wrong,
                    line,
                    count=1,
                )
                if broken != line:
                    yield changed("broken reference", original, at, broken, is_fixable=True)


def unknown_servers(original: Original, rng: random.Random) -> Iterator[Mutation]:
    inside = False
    for at in original.front:
        line = original.lines[at]
        inside = line.startswith("servers:") or (inside and line.startswith((" ", "-")))
        for server in SERVERS:
            if inside and server in line:
                wrong = misspelt(server, rng, lambda word: word in SERVERS)
                if wrong is not None:
                    broken = line.replace(server, wrong, 1)
                    yield changed("unknown server", original, at, broken, is_fixable=True)


def bad_words(original: Original, rng: random.Random) -> Iterator[Mutation]:
    """Misspelled values of fields that hold one of a few words, the type among them."""
    for at, key in original.root_keys():
        match = re.fullmatch(r"\w+: ([\w-]+)", original.lines[at])
        kind = FIELD_NAMED[key].kind
        if match and isinstance(kind, OneOf):
            wrong = misspelt(match[1], rng, kind.choices.__contains__)
            if wrong is not None:
                name = "unknown type" if key == "type" else "bad word"
                yield changed(name, original, at, f"{key}: {wrong}", is_fixable=True)


def foreign_fields(original: Original, rng: random.Random) -> Iterator[Mutation]:
    own = FIELDS_OF[original.config.type]
    foreign = sorted(name for name in FIELD_NAMED if name not in own)
    if foreign:
        at = rng.choice([at for at, _ in original.root_keys()] or [original.front.start])
        yield inserted("foreign field", original, at, f"{rng.choice(foreign)}: x")
    at = original.front.stop - (0 if original.is_markdown else 1)
    yield inserted("unheard-of field", original, at, "zzyzx_qqq: 1")


def both_instructions(original: Original, _rng: random.Random) -> Iterator[Mutation]:
    body = original.lines[original.front.stop + 1 :] if original.is_markdown else ()
    if any(line.strip() for line in body):
        yield inserted(
            "both instructions", original, original.front.stop, "instruction: Do it twice."
        )


def encodings(original: Original, rng: random.Random) -> Iterator[Mutation]:
    text = original.line_end.join(original.lines)
    yield Mutation("UTF-16", original, text.encode("utf-16"), 1)
    yield Mutation("UTF-16 without mark", original, text.encode("utf-16-le"), 1)
    at = rng.choice(original.front)
    lines = [line.encode("ascii", "ignore").decode() for line in original.lines]
    lines[at] += " # é"
    data = original.line_end.join(lines).encode("latin-1")
    yield Mutation("Latin-1", original, data, at + 1)


def tabs(original: Original, rng: random.Random) -> Iterator[Mutation]:
    indented = [at for at in original.front if re.match(r" +(- )?[\w\"]", original.lines[at])]
    block = {at for at in indented if _in_block_text(original, at)}
    for at in rng.sample(sorted(set(indented) - block), min(2, len(indented) - len(block))):
        yield changed("tab", original, at, "\t" + original.lines[at].lstrip())


def history_markers(original: Original, rng: random.Random) -> Iterator[Mutation]:
    if original.is_markdown and len(original.lines) > original.front.stop + 2:
        after = next(
            at for at in range(original.front.stop + 1, len(original.lines)) if original.lines[at]
        )
        marker = rng.choice(["---USER", "---ASSISTANT", "---RESOURCE"])
        yield inserted("history marker", original, after + 1, marker)


def broken_names(original: Original, rng: random.Random) -> Iterator[Mutation]:
    for at, key in original.root_keys():
        if key == "name":
            name = rng.choice(["a/b", "..", ".hidden", '"a\\\\b"', '"a\\tb"', '""', "[x]"])
            yield changed("bad name", original, at, f"name: {name}")


def broken_yaml(original: Original, rng: random.Random) -> Iterator[Mutation]:
    for at, key in original.root_keys():
        if re.fullmatch(r"\w+: [\w-]+", original.lines[at]):
            value = rng.choice(['"a" b', "a: b", "]", "@x", "*nobody", "!!python/none x"])
            yield changed("broken YAML", original, at, f"{key}: {value}")
            return


MUTATORS: tuple[Mutator, ...] = (
    key_typos,
    nested_key_typos,
    quoted_values,
    wrong_types,
    duplicate_keys,
    unclosed_frontmatter,
    toml_fences,
    broken_references,
    unknown_servers,
    bad_words,
    foreign_fields,
    both_instructions,
    encodings,
    tabs,
    history_markers,
    broken_names,
    broken_yaml,
)


def children(config: AgentConfig, field: str) -> tuple[str, ...]:
    value: str | tuple[str, ...] | None = getattr(config, field)
    return (value,) if isinstance(value, str) else value or ()


def _in_block_text(original: Original, at: int) -> bool:
    before = [line for line in original.lines[:at] if re.match(r"\w", line)]
    return bool(before) and before[-1].endswith(("|", ">", "|-"))


def read_originals() -> list[Original]:
    originals: list[Original] = []
    for card in load_cards([VALID]).cards:
        path = VALID / Path(card.path).name
        text = path.read_bytes().decode()
        plain = text.removeprefix(BOM)
        originals.append(
            Original(
                path,
                tuple(plain.replace("\r\n", "\n").split("\n")),
                text[: len(text) - len(plain)],
                "\r\n" if "\r\n" in plain else "\n",
                card.config,
            )
        )
    return originals


def mutate(originals: list[Original]) -> Iterator[Mutation]:
    seen: set[tuple[Path, bytes]] = set()
    for number in range(ROUNDS):
        for original in originals:
            for mutator in MUTATORS:
                rng = random.Random(f"{number} {original.path.name} {mutator.__name__}")
                for mutation in mutator(original, rng):
                    if (original.path, mutation.data) not in seen:
                        seen.add((original.path, mutation.data))
                        yield mutation


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the checks took one mutation."""

    mutation: Mutation
    found: tuple[Diagnostic, ...]
    fixed: bool

    @property
    def errors(self) -> list[Diagnostic]:
        return [one for one in self.found if one.severity == "error"]

    @property
    def placed(self) -> bool:
        """Whether the first error is on the line that was broken."""
        return bool(self.errors) and _line(self.errors[0]) == self.mutation.line


def _line(problem: Diagnostic) -> int:
    return 1 if problem.span is None else problem.span.start.line


def check(file: Path, data: bytes, others: list[Card]) -> tuple[list[Card], tuple[Diagnostic, ...]]:
    """Check one file as a part of the set of the others."""
    file.write_bytes(data)
    loaded = load_cards([file])
    if loaded.diagnostics and any(one.severity == "error" for one in loaded.diagnostics):
        return list(loaded.cards), tuple(loaded.diagnostics)
    found = check_set([*loaded.cards, *others], servers=SERVERS)
    own = [one for one in found if one.path == str(file)]
    return list(loaded.cards), (*loaded.diagnostics, *own)


def judge(mutation: Mutation, folder: Path, cards: list[Card]) -> Outcome:
    original = mutation.original
    file = folder / original.path.name
    others = [card for card in cards if card.config.name != original.config.name]
    _, found = check(file, mutation.data, others)
    fixed = False
    if mutation.is_fixable:
        text = mutation.data.decode()
        mark = text[: len(text) - len(text.removeprefix(BOM))]
        changed_text, done = fix_text(text.removeprefix(BOM), found)
        if done:
            again, left = check(file, (mark + changed_text).encode(), others)
            same = [replace(card.config, source=original.config.source) for card in again]
            fixed = same == [original.config] and not [
                one for one in left if one.severity == "error"
            ]
    return Outcome(mutation, found, fixed)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    folder = tmp_path_factory.mktemp("mutations")
    cards = list(load_cards([VALID]).cards)
    return [judge(mutation, folder, cards) for mutation in mutate(read_originals())]


@pytest.mark.spec("CARD-16", "FILE-3")
def test_valid_cards_raise_no_alarm() -> None:
    loaded = load_cards([VALID])
    assert loaded.diagnostics == ()
    assert len(loaded.cards) == len(list(VALID.iterdir()))
    assert check_set(tuple(loaded.cards), servers=SERVERS) == ()
    assert {card.config.type for card in loaded.cards} == set(FIELDS_OF)


def test_there_are_enough_mutations_of_every_kind(outcomes: list[Outcome]) -> None:
    kinds = Counter(outcome.mutation.kind for outcome in outcomes)
    assert len(outcomes) >= 600
    assert len(kinds) >= len(MUTATORS)
    assert min(kinds.values()) >= 5


@pytest.mark.spec("CARD-11", "FILE-2")
def test_every_mutation_is_found(outcomes: list[Outcome]) -> None:
    missed = [outcome for outcome in outcomes if not outcome.errors]
    print(f"detection: {1 - len(missed) / len(outcomes):.2%} of {len(outcomes)}")
    assert not missed, report(missed)


@pytest.mark.spec("CARDS-3")
def test_problems_are_on_the_line_that_was_broken(outcomes: list[Outcome]) -> None:
    elsewhere = [outcome for outcome in outcomes if not outcome.placed]
    print(f"exact line: {1 - len(elsewhere) / len(outcomes):.2%} of {len(outcomes)}")
    assert len(elsewhere) <= len(outcomes) * 0.01, report(elsewhere)


@pytest.mark.spec("CARDS-3")
def test_fixes_give_the_original_back(outcomes: list[Outcome]) -> None:
    fixable = [outcome for outcome in outcomes if outcome.mutation.is_fixable]
    unfixed = [outcome for outcome in fixable if not outcome.fixed]
    print(f"correct fix: {1 - len(unfixed) / len(fixable):.2%} of {len(fixable)}")
    assert len(fixable) >= 200
    assert len(unfixed) <= len(fixable) * 0.1, report(unfixed)
    never = {one.mutation.kind for one in fixable} - {
        one.mutation.kind for one in fixable if one.fixed
    }
    assert not never, report([one for one in unfixed if one.mutation.kind in never])


def report(outcomes: list[Outcome]) -> str:
    """Return what went wrong with some mutations, for whoever reads the failed test."""
    kinds = Counter(outcome.mutation.kind for outcome in outcomes)
    lines = [f"{len(outcomes)} of them: {dict(kinds)}"]
    for outcome in outcomes[:40]:
        mutation = outcome.mutation
        written = mutation.data.decode("utf-8", "replace").splitlines()
        line = written[mutation.line - 1] if mutation.line <= len(written) else ""
        lines.append(f"{mutation.kind}: {mutation.original.path.name}:{mutation.line}: {line!r}")
        lines.extend(
            f"    {_line(one)}: {one.code} {one.message} {one.fix}" for one in outcome.found
        )
    return "\n".join(lines)
