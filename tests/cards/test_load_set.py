from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.cards import set_check
from fast_agent.cards.fix import apply_fixes
from fast_agent.cards.load import load_cards
from fast_agent.cards.load_set import LoadSet, check_set, default_choice
from fast_agent.cards.set_check import find_rings
from fast_agent.diagnostics import rules
from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.text.span import Span

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from fast_agent.cards.card import Card


def load(directory: Path, files: Mapping[str, str]) -> tuple[Card, ...]:
    """Write card files and load them in the order given."""
    paths = [directory / name for name in files]
    for path in paths:
        path.write_text(files[path.name])
    loaded = load_cards(paths)
    assert not loaded.diagnostics
    return tuple(loaded.cards)


def agent(name: str, rest: str = "") -> str:
    return f"name: {name}\ninstruction: Work.\n{rest}"


def found(
    cards: Collection[Card], servers: Collection[str] | None = None
) -> list[tuple[str, str, tuple[int, int] | None]]:
    return [
        (
            one.code,
            one.path.rsplit("/", 1)[-1],
            None if one.span is None else (one.span.start.line, one.span.start.column),
        )
        for one in check_set(tuple(cards), servers=servers)
    ]


@pytest.mark.spec("SET-1")
@pytest.mark.parametrize(
    ("text", "place", "fixed"),
    [
        ("agents: [ab, writr]", (3, 14), "agents: [ab, writer]"),
        ("agents:\n  - ab\n  - 'writr' # c", (5, 5), "agents:\n  - ab\n  - writer # c"),
        ("type: chain\nsequence: [writr]", (4, 12), "type: chain\nsequence: [writer]"),
        ("type: parallel\nfan_out: [writr]", (4, 11), "type: parallel\nfan_out: [writer]"),
        (
            "type: parallel\nfan_out: [ab]\nfan_in: writr",
            (5, 9),
            "type: parallel\nfan_out: [ab]\nfan_in: writer",
        ),
        (
            "type: evaluator_optimizer\ngenerator: writr\nevaluator: ab",
            (4, 12),
            "type: evaluator_optimizer\ngenerator: writer\nevaluator: ab",
        ),
        (
            "type: evaluator_optimizer\ngenerator: ab\nevaluator: writr",
            (5, 12),
            "type: evaluator_optimizer\ngenerator: ab\nevaluator: writer",
        ),
        ("type: MAKER\nworker: writr", (4, 9), "type: MAKER\nworker: writer"),
    ],
)
def test_an_unknown_agent_is_placed_and_fixed(
    tmp_path: Path, text: str, place: tuple[int, int], fixed: str
) -> None:
    files = {
        "a.yaml": agent("a", text),
        "w.yaml": agent("writer"),
        "ab.yaml": agent("ab"),
    }
    cards = load(tmp_path, files)
    (problem,) = check_set(cards)
    assert problem.code == rules.UNKNOWN_AGENT
    assert problem.message == "no agent is named `writr`"
    assert problem.hint == "did you mean `writer`?"
    assert problem.span is not None
    assert (problem.span.start.line, problem.span.start.column) == place
    assert problem.source_line == files["a.yaml"].split("\n")[place[0] - 1]
    apply_fixes([problem])
    assert (tmp_path / "a.yaml").read_text() == agent("a", fixed)
    assert check_set(tuple(load_cards([tmp_path]).cards)) == ()


def test_a_card_is_not_suggested_to_itself(tmp_path: Path) -> None:
    (problem,) = check_set(load(tmp_path, {"w.yaml": agent("writer", "agents: [writr]")}))
    assert problem.code == rules.UNKNOWN_AGENT
    assert problem.hint is not None
    assert "writer" not in problem.hint
    assert problem.fix is None


def test_a_name_unlike_any_other_gets_no_fix(tmp_path: Path) -> None:
    cards = load(tmp_path, {"a.yaml": agent("a", "agents: [zzzzzz]"), "b.yaml": agent("b")})
    (problem,) = check_set(cards)
    assert problem.fix is None
    assert problem.hint == "load a card with this name, or correct the reference"


def test_many_unknown_names_are_not_all_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_check, "_COMPARISONS", 7)
    suggestions = set_check.Suggestions(["writer", "reader", "router"])
    found = [suggestions.find(word) for word in ("writr", "readr", "writr", "routr", "readr")]
    assert found == ["writer", "reader", "writer", None, "reader"]


def test_a_suggested_name_is_quoted_where_yaml_needs_it(tmp_path: Path) -> None:
    cards = load(
        tmp_path, {"a.yaml": agent("a", "agents: [Wrter one]"), "b.yaml": agent("'Writer: one'")}
    )
    (problem,) = check_set(cards)
    assert problem.fix is not None
    assert problem.fix.replacement == '"Writer: one"'


@pytest.mark.spec("SET-2")
def test_rings_show_the_way_round(tmp_path: Path) -> None:
    cards = load(
        tmp_path,
        {
            "a.yaml": agent("a", "agents: [x, b]"),
            "b.yaml": "name: b\ntype: chain\nsequence: [x, c]\n",
            "c.yaml": "name: c\ntype: parallel\nfan_out: [x]\nfan_in: a\n",
            "x.yaml": agent("x"),
        },
    )
    (problem,) = check_set(cards)
    assert problem.code == rules.REFERENCE_CYCLE
    assert problem.message == "agents refer to each other in a cycle: `a -> b -> c -> a`"
    assert problem.path.endswith("c.yaml")
    assert problem.span == Span.at(4, 9, 1)


def test_a_self_reference_is_no_ring(tmp_path: Path) -> None:
    cards = load(
        tmp_path,
        {"a.yaml": agent("a", "agents: [a]"), "c.yaml": "type: chain\nsequence: [a, c]\n"},
    )
    problems = check_set(cards)
    assert [one.code for one in problems] == [rules.SELF_REFERENCE] * 2
    assert problems[0].message == "`a` refers to itself: `a -> a`"
    assert problems[1].span == Span.at(2, 15, 1)


def test_a_diamond_is_no_ring(tmp_path: Path) -> None:
    files = {
        "a.yaml": agent("a", "agents: [b, c]"),
        "b.yaml": agent("b", "agents: [d]"),
        "c.yaml": agent("c", "agents: [d]"),
        "d.yaml": agent("d"),
    }
    assert found(load(tmp_path, files)) == []


@given(
    st.dictionaries(
        st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdefg"), max_size=4), max_size=6
    )
)
def test_without_the_reported_edges_there_is_no_ring(edges: dict[str, list[str]]) -> None:
    rings = list(find_rings(edges))
    closing = {(ring.node, ring.edge) for ring in rings}
    assert len(closing) == len(rings)
    for ring in rings:
        names = [*ring.begin, ring.begin[0]]
        assert ring.length == len(ring.begin)
        assert all(after in edges[before] for before, after in pairwise(names))
    left = {
        node: {
            target
            for index, target in enumerate(targets)
            if (node, index) not in closing and target != node and target in edges
        }
        for node, targets in edges.items()
    }
    while free := [node for node, targets in left.items() if not targets]:
        for node in free:
            del left[node]
        left = {node: targets - set(free) for node, targets in left.items()}
    assert left == {}


def test_a_long_ring_is_shortened_and_deep_sets_need_no_stack() -> None:
    count = 20_000
    edges = {str(number): [str((number + 1) % count)] for number in range(count)}
    (ring,) = find_rings(edges)
    assert ring.drawn == "0 -> 1 -> 2 -> 3 -> 4 -> 5 -> 6 -> 7 -> … (19991 more) -> 19999 -> 0"
    ten = {str(number): [str((number + 1) % 9)] for number in range(9)}
    assert next(find_rings(ten)).drawn == "0 -> 1 -> 2 -> 3 -> 4 -> 5 -> 6 -> 7 -> 8 -> 0"


@pytest.mark.spec("CARD-17", "SET-3")
def test_names_are_unique_and_both_places_are_shown(tmp_path: Path) -> None:
    cards = load(tmp_path, {"a.yaml": agent("same"), "b.yaml": "# b\n" + agent("same")})
    (problem,) = check_set(cards)
    assert problem.code == rules.DUPLICATE_NAME
    assert (problem.path, problem.span) == (str(tmp_path / "b.yaml"), Span.at(2, 7, 4))
    assert problem.message == f"the name `same` is taken by {tmp_path / 'a.yaml'}:1:7"
    (first,) = problem.related
    assert (first.path, first.span) == (str(tmp_path / "a.yaml"), Span.at(1, 7, 4))
    (other,) = load(tmp_path, {"c.yaml": agent("other")})
    with pytest.raises(ValueError, match="two cards are called 'same'"):
        LoadSet.of((other, *cards))


def test_names_from_file_names_clash_too(tmp_path: Path) -> None:
    cards = load(tmp_path, {"a.yaml": "instruction: x\n", "a.md": "---\n---\nx\n"})
    assert [one.code for one in check_set(cards)] == [rules.DUPLICATE_NAME]


def test_names_a_model_would_mix_up(tmp_path: Path) -> None:
    cards = load(tmp_path, {"a.yaml": agent("team a"), "b.yaml": agent("team.a")})
    (problem,) = check_set(cards)
    assert (problem.code, problem.severity) == (rules.SIMILAR_NAMES, "warning")
    assert "`team.a` and `team a` have the same tool name `agent__team_a`" in problem.message


@pytest.mark.spec("CARD-62", "SET-4")
def test_servers_must_be_configured(tmp_path: Path) -> None:
    text = agent("a", "servers: [time, gihub]\nmcp_connect:\n  - {target: x, name: own}\n")
    cards = load(tmp_path, {"a.yaml": text})
    assert check_set(cards) == ()
    (problem,) = check_set(cards, servers=["github", "time"])
    assert (problem.code, problem.span) == (rules.UNKNOWN_SERVER, Span.at(3, 17, 5))
    assert problem.fix is not None
    assert problem.fix.replacement == "github"
    (other,) = check_set(cards, servers=["time"])
    assert other.hint == "define it under `mcp.servers.gihub` in `fastagent.config.yaml`"


def test_filters_narrow_servers_the_card_uses(tmp_path: Path) -> None:
    text = agent(
        "a",
        "servers: [github]\ntools:\n  gihub: [a]\n  github: [a]\n  own: [b]\n"
        "prompts: {time: []}\nmcp_connect:\n  - {target: x, name: own}\n",
    )
    cards = load(tmp_path, {"a.yaml": text})
    problems = check_set(cards, servers=["github", "time"])
    assert [(one.code, one.span) for one in problems] == [
        (rules.FILTER_WITHOUT_SERVER, Span.at(5, 3, 5)),
        (rules.FILTER_WITHOUT_SERVER, Span.at(8, 11, 4)),
    ]
    assert problems[0].fix is not None
    assert problems[0].fix.replacement == "github"
    assert problems[1].fix is None
    assert [one.hint for one in problems] == [
        "did you mean `github`?",
        "add `time` to `servers`, or remove it",
    ]
    assert [one.fix for one in check_set(cards)] == [None, None]


def test_one_misspelling_is_one_problem(tmp_path: Path) -> None:
    text = agent(
        "a",
        "servers: [gihub]\ntools: {github: [a]}\nagents: [writr]\n"
        "child_history: {writer: {source: child}}\n",
    )
    cards = load(tmp_path, {"a.yaml": text, "w.yaml": agent("writer")})
    assert [one.code for one in check_set(cards, servers=["github"])] == [
        rules.UNKNOWN_SERVER,
        rules.UNKNOWN_AGENT,
    ]
    assert check_set(cards, servers=["github"], unread=["writr"])[1].code == (
        rules.HISTORY_WITHOUT_CHILD
    )


def test_child_history_is_about_children(tmp_path: Path) -> None:
    text = agent("a", "agents: [bb]\nchild_history:\n  b: {source: child}\n  bb: {}\n")
    cards = load(tmp_path, {"a.yaml": text, "b.yaml": agent("b"), "bb.yaml": agent("bb")})
    (problem,) = check_set(cards)
    assert (problem.code, problem.span) == (rules.HISTORY_WITHOUT_CHILD, Span.at(5, 3, 1))


def test_a_merge_needs_a_file_of_the_child(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text('{"messages": []}')
    files = {
        "a.yaml": agent("a", "agents: [b, c, d]\nhistory_merge_target: messages\n"
                        "child_history: {d: {merge_target: none}}\n"),
        "b.yaml": agent("b", "messages: b.json\n"),
        "c.yaml": agent("c"),
        "d.yaml": agent("d", "agents: [b, c]\nchild_history: {c: {merge_target: messages}}\n"),
    }  # fmt: skip
    problems = check_set(load(tmp_path, files))
    assert [(one.code, one.path, one.span) for one in problems] == [
        (rules.HISTORY_WITHOUT_FILE, str(tmp_path / "a.yaml"), Span.at(4, 23, 8)),
        (rules.HISTORY_WITHOUT_FILE, str(tmp_path / "d.yaml"), Span.at(4, 20, 24)),
    ]
    assert "`c` is merged into its `messages`" in problems[0].message


def test_a_child_named_twice_is_a_warning_but_a_step_may_repeat(tmp_path: Path) -> None:
    files = {
        "a.yaml": agent("a", "agents: [b, b]\nservers: [s, s]\n"),
        "b.yaml": agent("b"),
        "c.yaml": "type: chain\nsequence: [b, b]\n",
    }
    problems = check_set(load(tmp_path, files))
    assert [(one.code, one.severity, one.span) for one in problems] == [
        (rules.REPEATED_NAME, "warning", Span.at(3, 13, 1)),
        (rules.REPEATED_NAME, "warning", Span.at(4, 14, 1)),
    ]


@pytest.mark.spec("CARD-23", "SET-7")
def test_defaults(tmp_path: Path) -> None:
    files = {
        "a.yaml": agent("a", "default: true\n"),
        "b.yaml": agent("b", "default: true\ntool_only: true\n"),
        "c.yaml": agent("c", "default: true\n"),
    }
    problems = check_set(load(tmp_path, files))
    assert [(one.code, one.path[-6:]) for one in problems] == [
        (rules.TOOL_ONLY_DEFAULT, "b.yaml"),
        (rules.SEVERAL_DEFAULTS, "b.yaml"),
        (rules.SEVERAL_DEFAULTS, "c.yaml"),
    ]
    assert problems[2].span == Span.at(3, 1, 7)
    assert problems[2].related[0].path.endswith("a.yaml")


@pytest.mark.spec("CARD-12", "CARD-22", "SET-8")
@pytest.mark.parametrize(
    ("files", "default"),
    [
        ({"b": "", "a": "default: true\n"}, "a"),
        ({"a": "", "b": "agents: [a, c]\n", "c": ""}, "b"),
        ({"c": "", "a": "", "b": ""}, "c"),
        ({"a": "tool_only: true\n", "c": "", "b": ""}, "c"),
        ({"a": "", "b": "agents: [a]\ntool_only: true\n"}, "a"),
        ({"a": "", "b": "agents: [a]\n", "c": "tool_only: true\n"}, "b"),
        ({"a": "agents: [b]\n", "b": "", "c": "agents: [d]\n", "d": ""}, "a"),
        ({"a": "tool_only: true\n"}, None),
    ],
)
def test_the_default_agent(tmp_path: Path, files: dict[str, str], default: str | None) -> None:
    cards = load(tmp_path, {f"{name}.yaml": agent(name, rest) for name, rest in files.items()})
    load_set = LoadSet.of(cards)
    assert load_set.default == default
    assert [fact.name for fact in load_set.facts()] == list(files)
    assert [fact.name for fact in load_set.facts() if fact.default] == [default] * bool(default)


def test_probes_are_asked_about_every_card_and_sorted_in(tmp_path: Path) -> None:
    cards = load(tmp_path, {"a.yaml": agent("a", "agents: [q]\n"), "b.yaml": agent("b")})

    def probe(card: Card) -> list[Diagnostic]:
        return [Diagnostic("FA999", f"probed {card.config.name}", card.path, Span.at(1, 1))]

    assert [one.message for one in check_set(cards, probes=[probe])] == [
        "probed a",
        "no agent is named `q`",
        "probed b",
    ]


def test_an_empty_set() -> None:
    assert check_set(()) == ()
    assert LoadSet.of(()) == LoadSet.of([])
    assert LoadSet.of(()).default is None


def test_large_sets_take_linear_time(tmp_path: Path) -> None:
    (model,) = load(tmp_path, {"a.yaml": agent("a", "servers: [s]\ntools: {s: [x]}\n")})
    count = 5_000
    cards = [
        replace(
            model,
            config=replace(
                model.config,
                name=f"agent-{number}",
                agents=tuple(f"agent-{near}" for near in range(number + 1, number + 4)),
            ),
        )
        for number in range(count - 3)
    ]
    cards += [
        replace(model, config=replace(model.config, name=f"agent-{number}"))
        for number in range(count - 3, count)
    ]
    best = min(_seconds(cards) for _ in range(3))
    assert best < 2  # 0.05 alone on a core; the machine may be shared
    broken = [
        replace(card, config=replace(card.config, agents=(f"agnet-{number}x", "nobody")))
        for number, card in enumerate(cards)
    ]
    start = time.process_time()
    problems = check_set(broken)
    assert time.process_time() - start < 100  # 5 alone on a core; 250 if each had a suggestion
    assert len(problems) >= 2 * count


def _seconds(cards: list[Card]) -> float:
    start = time.process_time()
    assert check_set(cards, servers=["s"]) == ()
    assert LoadSet.of(cards).default == "agent-0"
    return time.process_time() - start


def test_the_note_on_the_default_agent_names_those_it_was_chosen_over(tmp_path: Path) -> None:
    files = {
        "kid.yaml": agent("kid"),
        "lead.yaml": agent("lead", "agents: [kid]\n"),
        "lone.yaml": agent("lone"),
        "tool.yaml": agent("tool", "tool_only: true\n"),
    }
    note = default_choice(load(tmp_path, files))
    assert note is not None
    assert note.message == (
        "`lead` is the default agent, not `lone`: it uses others, and none uses it"
    )
    del files["lead.yaml"]
    note = default_choice(load(tmp_path, files))
    assert note is not None
    assert note.message == "`kid` is the default agent, not `lone`: it is the first that is loaded"
    assert default_choice(load(tmp_path, {"kid.yaml": agent("kid")})) is None


@pytest.mark.parametrize("change", ["default: true\n", "tool_only: true\n", "agents: [b]\n", ""])
def test_a_set_that_follows_another_equals_a_fresh_one(tmp_path: Path, change: str) -> None:
    files = {"a.yaml": agent("a", "agents: [c]\n"), "b.yaml": agent("b"), "c.yaml": agent("c")}
    old = load(tmp_path, files)
    new = load(tmp_path, {**files, "a.yaml": agent("a", change), "c.yaml": agent("c", change)})
    cards = (new[0], old[1], new[2])
    after = LoadSet.of(old).after(cards)
    fresh = LoadSet.of(cards)
    assert (after, after.callers) == (fresh, fresh.callers)
