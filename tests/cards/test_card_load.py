from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from fast_agent.cards.agent_config import AgentConfig
from fast_agent.cards.card import Card, CardLoad, FileLoad, SkippedFile
from fast_agent.diagnostics.diagnostic import Diagnostic

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn


@st.composite
def files(draw: DrawFn) -> FileLoad:
    """What a file may give: cards and problems, or why it was skipped."""
    names = draw(st.lists(st.sampled_from("abc"), max_size=3))
    cards = tuple([Card(AgentConfig(name=name), f"{name}.md") for name in names])
    problem = Diagnostic("FA999", draw(st.sampled_from("xy")), "a.md", severity="warning")
    return FileLoad(
        cards=cards,
        diagnostics=(problem,) if draw(st.integers(0, 3)) == 0 else (),
        skipped=SkippedFile("a.md", "no card") if not cards else None,
        unread=("a",) if draw(st.integers(0, 5)) == 0 else (),
    )


@settings(max_examples=60)
@given(st.data())
def test_files_that_changed_give_what_all_files_give(data: st.DataObject) -> None:
    there = data.draw(st.lists(files(), min_size=1, max_size=8))
    load = CardLoad.of(there)
    for _ in range(3):
        places = st.sampled_from(range(len(there)))
        changes = data.draw(st.dictionaries(places, files()))
        for at, file in changes.items():
            there[at] = file
        load, whole = load.after(changes), CardLoad.of(there)
        assert load == whole
        # Cards are compared as objects, and those here are much alike.
        assert [id(card) for card in load.cards] == [id(card) for card in whole.cards]
