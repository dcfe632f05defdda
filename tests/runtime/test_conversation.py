from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from fast_agent.messages.content import TextContent
from fast_agent.messages.message import Message, ToolCall, ToolResult
from fast_agent.messages.validity import check_validity
from fast_agent.messages.view import LOST, view_of
from fast_agent.runtime.conversation import Conversation

ids = st.sampled_from(["a", "b", "c"])
any_message = st.builds(
    Message,
    st.sampled_from(["user", "assistant"]),
    st.just((TextContent("x"),)),
    st.lists(st.builds(ToolCall, ids, st.just("tool")), max_size=3).map(tuple),
    st.lists(st.builds(ToolResult, ids), max_size=3).map(tuple),
)
any_messages = st.lists(any_message, max_size=12)


def closed(messages: list[Message]) -> list[Message]:
    """Let the user have the last word, as when a turn is asked for."""
    return [*messages, Message.user("and?")]


@given(any_messages)
def test_the_view_of_anything_is_a_conversation_providers_accept(messages: list[Message]) -> None:
    view = view_of(closed(messages))
    assert check_validity(view) == []
    roles = [one.role for one in view]
    assert all(one != other for one, other in pairwise(roles))


@given(any_messages)
def test_appending_gives_the_same_view_as_starting_with_all(messages: list[Message]) -> None:
    conversation = Conversation()
    for message in messages:
        conversation.append(message)
    assert conversation.view == view_of(messages)
    assert list(conversation.history) == messages
    assert Conversation(messages).view == conversation.view


@given(any_messages)
def test_what_providers_accept_is_not_touched(messages: list[Message]) -> None:
    valid = list(view_of(closed(messages)))
    conversation = Conversation(valid[:2])
    for message in valid[2:]:
        conversation.append(message)
    assert conversation.view is conversation.history
    assert list(conversation.view) == valid


def test_a_conversation_of_a_turn_with_calls_is_held_once() -> None:
    conversation = Conversation()
    calls = (ToolCall("1", "t"), ToolCall("2", "t"))
    conversation.append(Message.user("go"))
    conversation.append(Message("assistant", (), calls))
    conversation.append(Message("user", tool_results=(ToolResult("1"), ToolResult("2"))))
    conversation.append(Message.assistant("done"))
    assert conversation.view is conversation.history


def test_a_lost_result_is_said_to_be_lost() -> None:
    calls = (ToolCall("1", "t"), ToolCall("2", "t"))
    view = view_of([Message.user("go"), Message("assistant", (), calls), Message.user("so?")])
    answered = view[2]
    assert [(one.id, one.text, one.is_error) for one in answered.tool_results] == [
        ("1", LOST, True),
        ("2", LOST, True),
    ]
    assert answered.text == "so?"


def test_a_draft_leaves_the_conversation_as_it_was() -> None:
    conversation = Conversation([Message.user("q"), Message.assistant("a")])
    draft = conversation.draft()
    draft.append(Message.user("more"))
    other = conversation.draft()
    other.append(Message.user("else"))
    assert [one.text for one in conversation.history] == ["q", "a"]
    assert [one.text for one in draft.history] == ["q", "a", "more"]
    assert [one.text for one in other.view] == ["q", "a", "else"]
