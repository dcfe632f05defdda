from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fast_agent.cards.agent_config import (
    AgentConfig,
    ChildHistory,
    McpConnect,
    RequestParams,
    UsageLimits,
)
from fast_agent.cards.card import Card
from fast_agent.cards.document import read_markdown, read_yaml
from fast_agent.cards.dump import CardFormat, dump_card, dump_one, dump_set
from fast_agent.cards.fields import CARD_TYPES
from fast_agent.cards.load import load_cards
from fast_agent.cards.load_set import LoadSet
from fast_agent.cards.validate import Origin, validate_card
from fast_agent.diagnostics import rules
from fast_agent.errors import CardError
from fast_agent.text.source import Source
from fast_agent.text.yaml_writer import write_yaml

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent.cards.agent_config import CardType
    from fast_agent.text.json_value import JsonObject, JsonValue

CardObject: TypeAlias = "dict[str, JsonValue]"
CardObjects: TypeAlias = "Callable[[CardType], st.SearchStrategy[CardObject]]"

FORMATS: tuple[CardFormat, ...] = ("markdown", "yaml")
ENVIRON = {"HOME": "/home/a", "X": "x: y # z", "N": "3"}
HERE = Path("/cards")


def read(text: str, card_format: CardFormat, source: Path | None = HERE / "a.md") -> Card | None:
    """Load the text of a card; None where it has an error."""
    reader = read_markdown if card_format == "markdown" else read_yaml
    reading = reader(Source("a", text.replace("\r\n", "\n")), multi_card=True)
    if reading.diagnostics or len(reading.documents) != 1:
        return None
    card, _ = validate_card(reading.documents[0], Origin("a", source), ENVIRON)
    return card if card.sound else None


def again(config: AgentConfig, card_format: CardFormat, written: CardObject | None) -> AgentConfig:
    text = dump_card(config, card_format, written=written)
    card = read(text, card_format, config.source)
    assert card is not None, text
    return card.config


@pytest.mark.spec("DUMP-1", "FIELD-6")
@pytest.mark.parametrize("card_type", CARD_TYPES)
def test_a_dumped_card_loads_as_it_was(card_type: CardType, card_objects: CardObjects) -> None:
    count = 0

    @given(card_objects(card_type), st.sampled_from(FORMATS))
    @settings(max_examples=120)
    def prove(values: CardObject, card_format: CardFormat) -> None:
        nonlocal count
        card = read(write_yaml(values), "yaml")
        if card is None:
            return
        count += 1
        written = dict(card.written or {})
        assert again(card.config, card_format, written) == card.config
        # What `${VARIABLES}` became is no variable when it is dumped without the card's text.
        assert again(card.config, card_format, None) == card.config

    prove()
    assert count > 60


INSTRUCTIONS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40),
    st.lists(
        st.sampled_from(
            [
                *(
                    "---",
                    "---USER",
                    "---SYSTEM",
                    "---RESOURCE",
                    "---ASSISTANT ",
                    "```",
                    "~~~",
                    "+++",
                ),
                *(
                    "type: agent",
                    "name: b",
                    "",
                    " ",
                    "  x",
                    "\tx",
                    "x ",
                    "x\t",
                    "# x",
                    "a: b",
                    "...",
                ),
                *(
                    "{{agents}}",
                    "${HOME}",
                    "$${X}",
                    "%YAML 1.2",
                    "- a",
                    "x\r",
                    "\x85",
                    "\u2028",
                    "漢",
                ),
            ]
        ),
        max_size=6,
    ).map("\n".join),
)


@given(INSTRUCTIONS.filter(lambda text: bool(text.strip())), st.sampled_from(FORMATS))
@settings(max_examples=500)
@example("---USER", "markdown")
@example("Hello\n---\ntype: agent\n---\nBye", "markdown")
@example("\n lead", "markdown")
@example("trail ", "markdown")
@example("---SYSTEM", "markdown")
@example("---SYSTEM\nx", "markdown")
@example("${HOME} ${NOT_SET}", "yaml")
@example("a\r\nb", "markdown")
@example("a\x85b\u2028c", "yaml")
@example("\ufeffx", "markdown")
def test_every_instruction_comes_back(instruction: str, card_format: CardFormat) -> None:
    # No card has one that ends with a line break.
    config = AgentConfig(name="a", instruction=instruction.rstrip("\n"), source=HERE / "a.md")
    assert again(config, card_format, None) == config


@pytest.mark.parametrize("block", ["|", "|+", "|-"])
def test_a_block_of_yaml_is_dumped_as_a_body(tmp_path: Path, block: str) -> None:
    text = f"type: agent\nname: a\ninstruction: {block}\n  You help.\n\n  Briefly.\n"
    (tmp_path / "a.yaml").write_text(text)
    (card,) = load_cards([tmp_path / "a.yaml"]).cards
    dumped = dump_card(card.config, "markdown", written=None)
    assert dumped.endswith("---\nYou help.\n\nBriefly.\n")
    assert "instruction:" not in dumped


@pytest.mark.spec("CARD-89")
def test_markdown_has_the_instruction_as_its_body() -> None:
    config = AgentConfig(
        name="sizer",
        instruction="Say how big it is.\n\nToday is {{currentDate}}, braces { stay }.",
        description="Sizes things: all of them.",
        servers=("time", "github"),
        tools={"time": ("get_time",)},
        skills=(),
        shell=True,
        cwd="/work",
        max_parallel=2,
        child_history={"b": ChildHistory(source="child")},
        mcp_connect=(McpConnect(target="https://a.example/mcp", headers={"X-Key": "on"}),),
        request_params=RequestParams(max_tokens=5, usage_limits=UsageLimits(max_requests=2)),
    )
    assert dump_card(config) == (
        "---\n"
        "type: agent\n"
        "name: sizer\n"
        'description: "Sizes things: all of them."\n'
        "request_params:\n"
        "  max_tokens: 5\n"
        "  usage_limits:\n"
        "    max_requests: 2\n"
        "servers: [time, github]\n"
        "tools:\n"
        "  time: [get_time]\n"
        "mcp_connect:\n"
        "  - target: https://a.example/mcp\n"
        "    headers:\n"
        '      X-Key: "on"\n'
        "skills: []\n"
        "shell: true\n"
        "cwd: /work\n"
        "child_history:\n"
        "  b:\n"
        "    source: child\n"
        "max_parallel: 2\n"
        "---\n"
        "Say how big it is.\n"
        "\n"
        "Today is {{currentDate}}, braces { stay }.\n"
    )
    yaml = dump_card(config, "yaml")
    assert yaml.endswith(
        "instruction: |-\n  Say how big it is.\n\n  Today is {{currentDate}}, braces { stay }.\n"
    )


@pytest.mark.parametrize(
    "instruction", ["---USER", "a\n---USER\nb", "\nlead", "a\n\n", "a\n---\ntype: agent\n---\nb"]
)
def test_what_a_body_cannot_hold_stays_a_field(instruction: str) -> None:
    text = dump_card(AgentConfig(name="a", instruction=instruction))
    assert text.endswith("---\n")
    assert "\ninstruction: " in text


@pytest.mark.spec("DUMP-2", "FIELD-4")
def test_unset_stays_unset_and_defaults_are_left_out() -> None:
    assert dump_card(AgentConfig(name="a", instruction="x"), "yaml") == (
        "type: agent\nname: a\ninstruction: x\n"
    )
    chain = AgentConfig(name="c", type="chain", sequence=("a", "b"))
    assert dump_card(chain) == "---\ntype: chain\nname: c\nsequence: [a, b]\n---\n"
    kept = AgentConfig(name="a", instruction="x", use_history=True, skills=())
    assert dump_card(kept, "yaml") == (
        "type: agent\nname: a\nuse_history: true\nskills: []\ninstruction: x\n"
    )


def load_set(*configs: AgentConfig) -> LoadSet:
    return LoadSet.of([Card(config) for config in configs])


def agent(name: str, **fields: object) -> AgentConfig:
    return replace(AgentConfig(name=name, instruction="Work."), **fields)


def codes(error: pytest.ExceptionInfo[CardError]) -> list[str]:
    return [one.code for one in error.value.diagnostics]


@pytest.mark.spec("DUMP-2")
def test_variables_stay_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        "name: a\nmodel: ${MODEL:passthrough}\ndescription: costs $${X}\n"
        "messages: ${DIR}/h.md\nmax_parallel: ${N}\nrequest_params: {maxTokens: '${N}', seed: 1}\n"
        "instruction: Be ${MOOD}.\n"
    )
    environ = {"DIR": "hist", "N": "4", "MOOD": "kind"}
    (card,) = load_cards([tmp_path], environ=environ).cards
    assert card.sound
    assert card.config.instruction == "Be kind."
    loaded = LoadSet.of([card])
    for card_format in FORMATS:
        (file,) = dump_set(loaded, tmp_path / "out" / card_format, card_format)
        text = file.read_text()
        for part in ("${MODEL:passthrough}", "$${X}", "../../${DIR}/h.md", "${N}", "Be ${MOOD}."):
            assert part in text, text
        (back,) = load_cards([file], environ=environ).cards
        assert (
            replace(back.config, source=card.config.source, messages=card.config.messages)
            == card.config
        )


@pytest.mark.spec("DUMP-3")
def test_what_changed_since_a_card_was_read_is_dumped() -> None:
    changed = AgentConfig(name="a", instruction="x", description="new")
    assert "description: new\n" in dump_card(changed, written={"name": "a", "description": "old"})
    config = AgentConfig(name="a", instruction="x", agents=("b", "c"))
    assert "agents: [b, c]\n" in dump_card(config, written={"name": "a", "agents": ["b"]})
    written: JsonObject = {"name": "a", "agents": ["${KID}"]}
    assert 'agents:\n  - "${KID}"\n  - c\n' in dump_card(config, written=written)


def test_paths_lead_to_the_same_files(tmp_path: Path) -> None:
    cards = tmp_path / "cards"
    cards.mkdir()
    (cards / "a.md").write_text(
        "---\nmessages: [./h.md, /abs/h.md]\nskills: skills\nfunction_tools: ['../t.py:add']\n"
        "tool_hooks: {before_llm_call: hooks.py:see}\ncwd: .\nshell: true\n---\nWork.\n"
    )
    loaded = LoadSet.of(load_cards([cards]).cards)
    (file,) = dump_set(loaded, tmp_path / "x" / "out")
    (back,) = load_cards([file]).cards
    config = back.config
    assert config.messages == ("../../cards/h.md", "/abs/h.md")
    assert config.skills == ("../../cards/skills",)
    assert config.function_tools == ("../../t.py:add",)
    assert config.tool_hooks == {"before_llm_call": ("../../cards/hooks.py:see",)}
    assert config.cwd == "../../cards"
    (same,) = dump_set(loaded, cards)
    assert "messages: [./h.md, /abs/h.md]" in same.read_text()


def test_paths_of_an_agent_without_a_file(tmp_path: Path) -> None:
    loaded = load_set(agent("a", messages=("h.md",)), agent("b", function_tools=("t.py:f",)))
    with pytest.raises(CardError) as raised:
        dump_set(loaded, tmp_path / "out")
    assert codes(raised) == [rules.DUMP_PATH] * 2
    assert not (tmp_path / "out").exists()
    dump_set(loaded, tmp_path / "out", base=tmp_path)
    assert "messages: [../h.md]" in (tmp_path / "out" / "a.md").read_text()


def test_a_link_to_the_directory_of_a_card_does_not_break_paths(tmp_path: Path) -> None:
    (tmp_path / "deep" / "cards").mkdir(parents=True)
    (tmp_path / "deep" / "cards" / "a.md").write_text("---\nmessages: h.md\n---\nx\n")
    (tmp_path / "link").symlink_to(tmp_path / "deep" / "cards")
    loaded = LoadSet.of(load_cards([tmp_path / "link"]).cards)
    (file,) = dump_set(loaded, tmp_path / "out")
    assert "messages: [../deep/cards/h.md]" in file.read_text()


@pytest.mark.spec("DUMP-3")
def test_what_could_not_be_read_again_is_not_written(tmp_path: Path) -> None:
    deep: JsonValue = "value"
    for _ in range(70):
        deep = {"deeper": deep}
    loaded = load_set(agent("deep", request_params=RequestParams(extra_body={"a": deep})))
    with pytest.raises(CardError, match=r"`deep` could not be loaded again: .*nested deeper"):
        dump_set(loaded, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spec("DUMP-3")
def test_all_reasons_are_given_and_nothing_is_written(tmp_path: Path) -> None:
    def calculate() -> None: ...

    loaded = load_set(
        agent("fine"),
        agent("calc", function_tools=(calculate,)),
        agent("odd", description="\ud800"),
        agent("many", request_params=RequestParams(temperature=float("inf"))),
        agent("foreign", worker="x"),
        agent("loud", max_parallel=-1),
        agent("../up"),
        agent(".hidden"),
        agent("SKILL"),
        agent("Fine"),
        agent("FINE"),
    )
    with pytest.raises(CardError) as raised:
        dump_set(loaded, tmp_path / "out")
    messages = "\n".join(one.message for one in raised.value.diagnostics)
    assert "`function_tools` of `calc` holds the function" in messages
    assert "calculate`" in messages
    assert set(codes(raised)) == {
        rules.DUMP_CALLABLE,
        rules.DUMP_VALUE,
        rules.DUMP_OUTSIDE,
        rules.DUMP_FILE_NAME,
        rules.DUMP_FILE_COLLISION,
    }
    for name in ("calc", "odd", "many", "foreign", "loud", "../up", ".hidden", "SKILL", "Fine"):
        assert f"`{name}" in messages
    assert codes(raised).count(rules.DUMP_FILE_COLLISION) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spec("DUMP-4")
@pytest.mark.parametrize("name", ["../a", "a/b", "a\\b", "..", ".a", "", "a\nb", "a\0b"])
def test_a_dump_stays_in_its_directory(tmp_path: Path, name: str) -> None:
    with pytest.raises(CardError) as raised:
        dump_set(load_set(agent(name)), tmp_path / "out")
    assert {rules.DUMP_OUTSIDE, rules.DUMP_VALUE} & set(codes(raised))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spec("DUMP-4")
@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("a:b*c?", "a%3Ab%2Ac%3F"),
        ("ends. ", "ends%2E%20"),
        ("con", "%63on"),
        ("console", "console"),
        ("AUX.x", "%41UX.x"),
        ("100%", "100%"),
    ],
)
def test_names_that_some_file_system_cannot_hold(tmp_path: Path, name: str, stem: str) -> None:
    (file,) = dump_set(load_set(agent(name)), tmp_path)
    assert file.name == f"{stem}.md"
    (card,) = load_cards([file]).cards
    assert card.config.name == name


def test_a_long_name_is_cut(tmp_path: Path) -> None:
    (file,) = dump_set(load_set(agent("é" * 200)), tmp_path)
    assert len(file.name.encode()) < 255
    assert load_cards([file]).cards[0].config.name == "é" * 200


@pytest.mark.parametrize("name", ["fast-agent", "fastagent.config", "x.secrets"])
def test_a_dump_never_becomes_a_configuration_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(CardError) as raised:
        dump_set(load_set(agent(name)), tmp_path, "yaml")
    assert codes(raised) == [rules.DUMP_FILE_NAME]
    assert dump_set(load_set(agent(name)), tmp_path) == [tmp_path / f"{name}.md"]


@pytest.mark.spec("DUMP-4")
def test_links_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "link").symlink_to(outside)
    with pytest.raises(CardError) as raised:
        dump_set(load_set(agent("a")), tmp_path / "link")
    assert codes(raised) == [rules.DUMP_OUTSIDE]
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "a.md").symlink_to(outside / "a.md")
    with pytest.raises(CardError) as raised:
        dump_set(load_set(agent("b"), agent("a")), inside)
    assert codes(raised) == [rules.DUMP_OUTSIDE]
    assert list(outside.iterdir()) == []
    assert [one.name for one in inside.iterdir()] == ["a.md"]


def test_names_that_differ_in_unicode_form_collide(tmp_path: Path) -> None:
    with pytest.raises(CardError) as raised:
        dump_set(load_set(agent("\u00e9"), agent("e\u0301")), tmp_path)
    assert codes(raised) == [rules.DUMP_FILE_COLLISION]


def test_files_are_replaced_and_keep_their_permissions(tmp_path: Path) -> None:
    old = tmp_path / "a.md"
    old.write_text("old")
    old.chmod(0o600)
    other = tmp_path / "other.txt"
    other.write_text("mine")
    written = dump_set(load_set(agent("a"), agent("b c")), tmp_path)
    assert written == [tmp_path / "a.md", tmp_path / "b c.md"]
    assert old.read_text().endswith("Work.\n")
    assert old.stat().st_mode & 0o777 == 0o600
    umask = os.umask(0)
    os.umask(umask)
    assert (tmp_path / "b c.md").stat().st_mode & 0o777 == 0o666 & ~umask
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.md", "b c.md", "other.txt"]


def test_a_failure_half_way_brings_the_old_files_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.md").write_text("old a")
    (tmp_path / "c.md").write_text("old c")
    real = os.replace

    def fail_at_c(src: str, dst: str, **handles: int) -> None:
        if dst == "c.md" and src.endswith(".tmp"):
            raise OSError(28, "No space left on device")
        real(src, dst, **handles)

    monkeypatch.setattr(os, "replace", fail_at_c)
    with pytest.raises(CardError, match="no space left") as raised:
        dump_set(load_set(agent("a"), agent("b"), agent("c")), tmp_path)
    assert codes(raised) == [rules.DUMP_FAILED]
    monkeypatch.undo()
    assert {one.name: one.read_text() for one in tmp_path.iterdir()} == {
        "a.md": "old a",
        "c.md": "old c",
    }


def test_a_directory_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("x")
    with pytest.raises(CardError) as raised:
        dump_set(load_set(agent("a")), tmp_path / "out")
    assert codes(raised) == [rules.DUMP_FAILED]


def test_one_agent_goes_to_the_file_that_is_named(tmp_path: Path) -> None:
    loaded = load_set(agent("a"), agent("writer"))
    file = tmp_path / "new" / "Other.MD"
    assert dump_one(loaded, "writer", file) == file
    (card,) = load_cards([file]).cards
    assert card.config.name == "writer"
    with pytest.raises(CardError, match=r"`x\.txt` does not end as a Markdown card does"):
        dump_one(loaded, "a", tmp_path / "x.txt")
    with pytest.raises(CardError, match="YAML"):
        dump_one(loaded, "a", tmp_path / "x.md", "yaml")
    with pytest.raises(CardError, match="no agent is named `writr`") as raised:
        dump_one(loaded, "writr", tmp_path / "x.md")
    assert raised.value.hint == "did you mean `writer`?"
    assert [one.name for one in tmp_path.iterdir()] == ["new"]


@pytest.mark.spec("DUMP-1")
@pytest.mark.parametrize("card_format", FORMATS)
def test_a_whole_set_comes_back(tmp_path: Path, card_format: CardFormat) -> None:
    valid = Path(__file__).parent.parent / "corpus" / "valid"
    loaded = LoadSet.of(load_cards([valid], environ={}).cards)
    files = dump_set(loaded, tmp_path / "out", card_format)
    back = LoadSet.of(load_cards(files, environ={}).cards)
    assert list(back.cards) == list(loaded.cards)
    assert back.default == loaded.default
    for name, card in loaded.cards.items():
        moved = back.cards[name].config
        assert (
            replace(
                moved, source=card.config.source, cwd=card.config.cwd, skills=card.config.skills
            )
            == card.config
        )
    again = dump_set(back, tmp_path / "again", card_format)
    assert [one.read_bytes() for one in dump_set(back, tmp_path / "out", card_format)] == [
        one.read_bytes() for one in files
    ]
    assert len(again) == len(files)
