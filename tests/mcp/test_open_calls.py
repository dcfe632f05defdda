"""Whose a server's question is."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from fast_agent.mcp.open_calls import OpenCalls

if TYPE_CHECKING:
    from fast_agent.tools.human import HumanAnswer, HumanRequest


class Person:
    async def ask(self, request: HumanRequest) -> HumanAnswer:
        raise AssertionError(request)


@pytest.mark.anyio
@pytest.mark.spec("SERVE-7")
async def test_a_question_is_for_the_one_whose_calls_are_open() -> None:
    calls, ann, bob, usual = OpenCalls(), Person(), Person(), Person()
    assert calls.human(usual) is usual
    with ExitStack() as stack:
        stack.enter_context(calls.waiting("a", 9, ann))
        stack.enter_context(calls.waiting("b", 9, ann))
        stack.enter_context(calls.waiting(None, 9))
        assert calls.human(usual) is ann
        with calls.waiting("a", 9, bob):
            assert calls.human(usual) is None
        with calls.waiting("a", 9):
            assert calls.human(usual) is None
        assert calls.human(usual) is ann
    with calls.waiting("a", 9):
        assert calls.human(usual) is usual
        assert calls.human(None) is None
