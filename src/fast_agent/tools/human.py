"""Asking a person: the seam between tools or MCP servers that ask and the shell that can."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, Protocol, cast

from fast_agent.steps.steps import Codec, Step, here
from fast_agent.text.frozen import frozen
from fast_agent.text.visible import visible

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonObject, JsonValue


@frozen(kw_only=True)
class HumanRequest:
    """A question.

    Args:
        message: The question, as it is to be shown; untrusted when `server_name` is set.
        agent_name: The agent that asks or for which a server asks.
        server_name: The MCP server that asks, or None when the agent itself does.
        schema: JSON Schema (flat object) of the answer, or None for free text.
        url: An address to open instead of a form, or None.
    """

    message: str
    agent_name: str
    server_name: str | None = None
    schema: JsonObject | None = None
    url: str | None = None


@frozen(kw_only=True)
class HumanAnswer:
    """An answer; `content` is set only on `accept` (free text under the key `text`)."""

    action: Literal["accept", "decline", "cancel"]
    content: JsonObject | None = None


class Origins(Protocol):
    """Where agents and servers come from, as the person who is asked may know."""

    def agent_origin(self, name: str) -> str | None:
        """Return the file of an agent's card; None where it has none."""
        ...

    def server_origin(self, name: str) -> str | None:
        """Return where a server is declared: a file, an option; None where that is not known."""
        ...


def asker(request: HumanRequest, origins: Origins | None = None) -> str:
    """Return who asks and where that came from, as one visible line: `agent `ann` (ann.md) asks`.

    Args:
        request: The question.
        origins: Knows the files of agents and servers; None leaves them out, as for a person on
            another machine.
    """
    names = request.agent_name.split(", ")
    agents = [named(name, None if origins is None else origins.agent_origin(name))
              for name in names]  # fmt: skip
    who = f"agent{'' if len(agents) == 1 else 's'} {', '.join(agents)}"
    server = request.server_name
    if server is None:
        return f"{who} asks"
    origin = None if origins is None else origins.server_origin(server)
    return f"server {named(server, origin)} asks, for {who}"


def named(name: str, origin: str | None) -> str:
    """Return a name with where it comes from, visible: `` `ann` (ann.md) ``."""
    return f"`{visible(name)}`" if origin is None else f"`{visible(name)}` ({visible(origin)})"


class Human(Protocol):
    """A way to reach a person. Where there is none, callers hold None instead."""

    async def ask(self, request: HumanRequest) -> HumanAnswer:
        """Ask and wait for the answer."""
        ...


async def ask_human(human: Human, request: HumanRequest, name: str) -> HumanAnswer:
    """Ask a person as a step of the run: a run that continues in another process asks once.

    Args:
        human: Asks the user.
        request: The question.
        name: Where in the turn it is asked, such as the id of the call.
    """
    place = here()
    if place.silent:
        return await human.ask(request)
    asked: JsonObject = {"message": request.message, "schema": request.schema}
    if request.url is not None:
        asked = {**asked, "url": request.url}

    async def work() -> HumanAnswer:
        return await human.ask(request)

    step = Step("human", name, asked, request.agent_name)
    return await place.steps.wait_for(step, work, _ANSWER)


def _written(answer: HumanAnswer) -> JsonValue:
    content = {} if answer.content is None else {"content": answer.content}
    return {"action": answer.action, **content}


def _read(value: JsonValue) -> HumanAnswer:
    answer = cast("JsonObject", value)
    action = answer["action"]
    if action not in {"accept", "decline", "cancel"}:
        raise ValueError(f"an answer cannot be {action!r}")
    return HumanAnswer(
        action=cast("Literal['accept', 'decline', 'cancel']", action),
        content=cast("JsonObject | None", answer.get("content")),
    )


_ANSWER: Final = Codec(_written, _read)
