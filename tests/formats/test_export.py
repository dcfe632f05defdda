"""Exporting cards, and importing them again."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fast_agent.cards.agent_config import AgentConfig
from fast_agent.cards.card import Card
from fast_agent.cards.document import read_markdown
from fast_agent.cards.load import load_cards
from fast_agent.cards.placeholder import parse_template
from fast_agent.cards.request_params import RequestParams
from fast_agent.cards.validate import Origin, validate_card
from fast_agent.formats.assembly import Surroundings, assemble
from fast_agent.formats.export import Target, export_cards
from fast_agent.formats.reading import read_foreign
from fast_agent.formats.toml_writer import write_toml
from fast_agent.models.spec import parse_model_spec
from fast_agent.text.source import Source

_MODELS: dict[Target, tuple[str | None, ...]] = {
    "claude": (None, "sonnet", "haiku.high", "anthropic.claude-opus-4-8"),
    "copilot": (None, "sonnet", "gpt-5.high"),
    "opencode": (None, "sonnet", "gpt", "google.gemini-2.5-pro"),
    "gemini": (None, "gemini"),
    "codex": (None, "gpt-5.high", "gpt"),
    "docker-agent": (None, "sonnet", "gpt"),
}
_TEXTS = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), include_characters="\n\t"), min_size=1
) | st.sampled_from(["{{env}}", "\\{{x}}", "a\n---\nb", "---USER\nx", '"""', "${HOME}", "a: b #c"])
_NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,20}[a-z0-9]", fullmatch=True)


def reread(target: Target, cards: list[Card]) -> tuple[dict[str, AgentConfig], list[str]]:
    files, found = export_cards(cards, target)
    folder = {"copilot": ".github", "docker-agent": "."}.get(target, f".{target}")
    read = [
        one
        for name, text in files.items()
        if (one := read_foreign(Source.of(f"{folder}/agents/{name}", text), "none"))
    ]
    around = Surroundings(output=Path("out"), project=Path("none"), servers=("docs",))
    made = assemble(read, around)
    configs: dict[str, AgentConfig] = {}
    for card in made:
        (document,) = read_markdown(Source("", card.text), multi_card=True).documents
        again, problems = validate_card(document, Origin(card.name), {})
        assert [one for one in problems if one.severity == "error"] == []
        configs[card.name] = again.config
    return configs, [one.message for one in found]


def model_of(config: AgentConfig) -> str | None:
    return None if config.model is None else parse_model_spec(config.model).text


@pytest.mark.spec("FMT-15")
@pytest.mark.parametrize("target", sorted(_MODELS))
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_an_exported_card_comes_back(target: Target, data: st.DataObject) -> None:
    text = data.draw(_TEXTS.filter(lambda one: bool(one.strip())))
    instruction = "\n".join(text.split("\n")).strip("\n").strip()
    plain = "".join(map(str, parse_template(instruction).segments))
    has_placeholders = bool(parse_template(instruction).placeholders)
    turns = data.draw(st.none() | st.integers(1, 500))
    heat = data.draw(st.none() | st.floats(0, 2))
    has_server = data.draw(st.booleans())
    config = AgentConfig(
        name=data.draw(_NAMES.filter(lambda one: one != "helper")),
        instruction=instruction,
        description=data.draw(_TEXTS).strip() or None,
        model=data.draw(st.sampled_from(_MODELS[target])),
        shell=data.draw(st.booleans()),
        human_input=data.draw(st.booleans()),
        agents=data.draw(st.sampled_from(((), ("helper",)))),
        servers=("docs",) if has_server else (),
        tools={"docs": ("search",)} if has_server and data.draw(st.booleans()) else None,
        tool_only=data.draw(st.booleans()),
        request_params=RequestParams(max_iterations=turns, temperature=heat),
    )
    helper = AgentConfig(name="helper", instruction="Help.", description="Helps.")
    again, told = reread(target, [Card(config), Card(helper)])
    back = again[config.name]
    assert back.instruction is not None
    assert "".join(map(str, parse_template(back.instruction).segments)) == plain
    assert parse_template(back.instruction).placeholders == ()
    assert any("stays as text" in one for one in told) == has_placeholders
    if config.description is not None:
        assert back.description == config.description
    lost = " ".join(told)
    for name in ("agents", "servers", "tools", "tool_only", "human_input"):
        if f"`{name}` cannot be said" not in lost:
            assert getattr(back, name) == getattr(config, name), name
    if target != "codex":
        assert back.shell == config.shell
    if model_of(config) != model_of(back):
        assert "effort" in lost
    for name in ("max_iterations", "temperature"):
        wanted = getattr(config.request_params, name)
        if wanted is not None and f"`{name}` cannot be said" not in lost:
            assert back.request_params is not None
            assert getattr(back.request_params, name) == wanted


@pytest.mark.spec("FMT-14")
def test_what_does_not_fit_is_reported_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text(
        "---\ntype: agent\nname: a\nmodel: gpt-5\nfunction_tools: tools.py:f\n"
        "use_history: false\nrequest_params:\n  seed: 3\n---\nToday is {{currentDate}}.\n"
    )
    (tmp_path / "b.yaml").write_text("type: chain\nname: b\nsequence: [a]\n")
    files, found = export_cards(load_cards([path, tmp_path / "b.yaml"]).cards, "claude")
    assert list(files) == ["a.md"]
    places = {(one.message.split("`")[1], one.span.start.line if one.span else 0) for one in found}
    assert places == {
        ("gpt-5", 4),
        ("function_tools", 5),
        ("use_history", 6),
        ("seed", 8),
        ("{{currentDate}}", 10),
        ("chain", 1),
    }


@pytest.mark.parametrize(
    "text", ['"', '""" x """', 'ends "', "a\\b", "\x00\x7f\t", "ü\n\n🚀", "\n"]
)
def test_toml(text: str) -> None:
    values = {"plain": text, "lines": f"a\n{text}", "t": {"a b": [text], "n": {"x": True, "y": 1}}}
    assert tomllib.loads(write_toml(values)) == values
