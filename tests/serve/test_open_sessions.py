"""Sessions of HTTP clients: given out while the SDK has seen them lately."""

from __future__ import annotations

from fast_agent.resources.session import Session
from fast_agent.serve.open_sessions import RENEWED_SECONDS, OpenSessions


def test_a_session_is_given_out_until_the_sdk_should_see_it_again() -> None:
    now = 0.0
    sessions = OpenSessions(lambda: now)
    session = Session(lambda _method, _params: None)
    assert sessions.find("a") is None
    sessions.see("a", session)
    now = RENEWED_SECONDS
    assert sessions.find("a") is session
    now += 1
    assert sessions.find("a") is None
    sessions.see("a", session)
    assert sessions.find("a") is session
    sessions.forget("a")
    sessions.forget("b")
    assert sessions.find("a") is None
