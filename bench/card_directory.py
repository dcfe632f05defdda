"""Card directories: as many varied cards as asked for, the same ones for the same seed."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, TypeAlias, cast

if TYPE_CHECKING:
    from pathlib import Path

Fields: TypeAlias = "dict[str, object]"

SEED = 20_261
SERVERS = ("docs", "files", "search", "time")
_MODELS = ("passthrough", "sonnet", "haiku?reasoning=low", "openai.gpt-6.1-sol", "gemini-flash")
_TOOLS = ("read_*", "list_*", "get_page", "search", "find_in_*", "convert", "now")
_WORDS = """
answer ask background brief careful change check city clear collect compare cost customer date
deliver describe detail document draft early error evidence exact explain fact figure file
first follow form given guess help idea invoice item known language late letter list long
market matter meaning measure message name never note number offer open order other page plan
point price product question quote reader reason record report request result review rule
search sentence short source state step summary table task team test text time topic town unit
user value visit weather week word work write
""".split()  # noqa: SIM905 - a list of ninety lines says no more
_CONFIGURATION = "mcp:\n  servers:\n" + "".join(
    f'    {name}:\n      command: "server-{name}"\n      args: ["--quiet"]\n' for name in SERVERS
)


def write_cards(place: Path, count: int, seed: int = SEED) -> Path:
    """Write cards and the configuration they need.

    Args:
        place: A directory that does not exist yet.
        count: How many cards.
        seed: Chooses all that varies.

    Returns:
        The directory of the cards, inside `place`.
    """
    cards = place / "cards"
    cards.mkdir(parents=True)
    (place / "fastagent.config.yaml").write_text(_CONFIGURATION, encoding="utf-8")
    random = Random(seed)
    for number in range(count):
        name = _name(number)
        fields = _fields(random, number)
        if random.random() < 0.7:
            write = _flow if random.random() < 0.1 else _block
            front = "".join(write(key, value) for key, value in fields.items())
            text = f"---\n{front}---\n\n{_body(random)}"
            (cards / f"{name}.md").write_text(text, encoding="utf-8")
        else:
            fields["instruction"] = _body(random)
            text = "".join(_block(key, value) for key, value in fields.items())
            (cards / f"{name}.yaml").write_text(text, encoding="utf-8")
    return cards


def _name(number: int) -> str:
    return f"agent-{number:04}"


def _fields(random: Random, number: int) -> Fields:
    fields: Fields = {"type": "agent", "name": _name(number)}
    if number == 0:
        fields["default"] = True
    if random.random() < 0.9:
        fields["description"] = _sentence(random)
    earlier = min(number, 40)
    if number >= 10 and random.random() < 0.12:
        children = [_name(number - step) for step in random.sample(range(1, earlier + 1), 3)]
        return fields | _workflow(random, children)
    fields["model"] = random.choice(_MODELS)
    if number and random.random() < 0.3:
        steps = random.sample(range(1, earlier + 1), min(earlier, random.randint(1, 3)))
        fields["agents"] = [_name(number - step) for step in steps]
    if random.random() < 0.5:
        servers = random.sample(SERVERS, random.randint(1, 3))
        fields["servers"] = servers
        if random.random() < 0.6:
            fields["tools"] = {
                server: random.sample(_TOOLS, random.randint(1, 4)) for server in servers[:2]
            }
    if random.random() < 0.5:
        fields["request_params"] = _request_params(random)
    if random.random() < 0.2:
        fields["use_history"] = random.random() < 0.5
    return fields


def _workflow(random: Random, children: list[str]) -> Fields:
    kind = random.choice(("chain", "parallel", "router"))
    if kind == "chain":
        return {"type": kind, "sequence": children, "cumulative": random.random() < 0.5}
    if kind == "parallel":
        return {"type": kind, "fan_out": children[:2], "fan_in": children[2]}
    return {"type": kind, "agents": children, "model": "passthrough"}


def _request_params(random: Random) -> Fields:
    params: Fields = {"maxTokens": random.choice((512, 1024, 4096))}
    if random.random() < 0.6:
        params["temperature"] = random.choice((0.0, 0.2, 0.7))
    if random.random() < 0.3:
        params["max_iterations"] = random.randint(3, 30)
    return params


def _sentence(random: Random) -> str:
    words = random.choices(_WORDS, k=random.randint(5, 14))
    return f"{' '.join(words).capitalize()}."


def _body(random: Random) -> str:
    """Write an instruction of a few hundred to a few thousand letters."""
    parts = [f"# {_sentence(random)}", "Today is {{currentDate}}."]
    for _ in range(random.randint(1, 7)):
        chance = random.random()
        if chance < 0.6:
            parts.append(" ".join(_sentence(random) for _ in range(random.randint(2, 6))))
        elif chance < 0.85:
            parts.append("\n".join(f"- {_sentence(random)}" for _ in range(random.randint(3, 6))))
        else:
            example = json.dumps({word: _sentence(random) for word in random.sample(_WORDS, 3)})
            parts.append(f"```json\n{example}\n```")
    return "\n\n".join(parts) + "\n"


def _scalar(value: object) -> str:
    """Write a value on one line, words without quotes."""
    if isinstance(value, str) and value.replace("-", "").isalnum():
        return value
    return json.dumps(value)


def _flow(key: str, value: object) -> str:
    """Write a field on one line, mappings too: the way of a few cards."""
    return f"{key}: {_scalar(value)}\n"


def _block(key: str, value: object) -> str:
    """Write a field in block style, with short lists in brackets: the way of most cards."""
    if isinstance(value, str) and "\n" in value:
        lines = "".join(f"  {line}\n" if line else "\n" for line in value.splitlines())
        return f"{key}: |\n{lines}"
    if isinstance(value, list):
        items = cast("list[object]", value)
        return f"{key}:\n" + "".join(f"  - {_scalar(item)}\n" for item in items)
    if isinstance(value, dict):
        inner = cast("dict[str, object]", value)
        return f"{key}:\n" + "".join(f"  {name}: {_scalar(item)}\n" for name, item in inner.items())
    return _flow(key, value)
