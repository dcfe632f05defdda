"""What this client does for servers: answers their sampling, elicitation and roots requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fast_agent.mcp.elicitation import answer_elicitation
from fast_agent.mcp.roots import answer_roots
from fast_agent.mcp.sampling import SamplingPerson, answer_sampling

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp.client import ClientRequestContext
    from mcp.types import (
        CreateMessageRequestParams,
        CreateMessageResult,
        CreateMessageResultWithTools,
        ElicitRequestParams,
        ElicitRequestURLParams,
        ElicitResult,
        ErrorData,
        ListRootsResult,
    )

    from fast_agent.mcp.open_calls import OpenCalls
    from fast_agent.mcp.sampling import Sampler, SamplingApproval
    from fast_agent.mcp.server import ServerSpec
    from fast_agent.tools.human import Human

ADDRESS_LIMIT = 5
"""Most addresses a person is asked to open for one request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSide:
    """What an app can offer to servers; what is None is not offered.

    Args:
        sampler: Answers sampling requests.
        approval: Asks before a sampling request is served.
        human: The way to a person. A server may ask questions even without one, and gets `decline`.
    """

    sampler: Sampler | None = None
    approval: SamplingApproval | None = None
    human: Human | None = None


class ServerRequests:
    """The callbacks of one connection, in the shape the SDK wants."""

    def __init__(self, spec: ServerSpec, offered: ClientSide, calls: OpenCalls) -> None:
        self._spec = spec
        self._offered = offered
        self._calls = calls

    def options(self) -> dict[str, Any]:
        """Give the SDK client's keyword arguments; what is left out is not declared."""
        from mcp.types import SamplingCapability, SamplingToolsCapability

        options: dict[str, Any] = {}
        if self._spec.sampling and self._offered.sampler is not None:
            options["sampling_callback"] = self.sampling
            options["sampling_capabilities"] = SamplingCapability(tools=SamplingToolsCapability())
        if self._spec.elicitation:
            options["elicitation_callback"] = self.elicitation
        if self._spec.roots:
            options["list_roots_callback"] = self.roots
        return options

    async def sampling(
        self,
        context: ClientRequestContext,  # noqa: ARG002 - the SDK passes it by name
        params: CreateMessageRequestParams,
    ) -> CreateMessageResult | CreateMessageResultWithTools | ErrorData:
        """Answer `sampling/createMessage`."""
        sampler = self._offered.sampler
        if sampler is None:  # not declared then; a server that asks all the same gets an error
            from mcp.types import INVALID_REQUEST, ErrorData

            return ErrorData(code=INVALID_REQUEST, message="sampling is not offered")
        person = self._calls.person(None)
        with self._calls.paused():
            if (
                isinstance(person, SamplingPerson)
                and self._spec.sampling_model is None
                and person.offers_model(params)
            ):
                return await person.sample(params)
            return await answer_sampling(
                params,
                server_name=self._spec.name,
                model=self._spec.sampling_model,
                agent_names=self._calls.agent_names,
                sampler=sampler,
                approval=self._offered.approval,
            )

    async def elicitation(
        self,
        context: ClientRequestContext,  # noqa: ARG002 - the SDK passes it by name
        params: ElicitRequestParams,
    ) -> ElicitResult | ErrorData:
        """Answer `elicitation/create`."""
        with self._calls.paused():
            return await answer_elicitation(
                params,
                server_name=self._spec.name,
                agent_name=", ".join(self._calls.agent_names),
                human=self._calls.person(self._offered.human),
            )

    async def open_addresses(self, addresses: Sequence[ElicitRequestURLParams]) -> bool:
        """Ask the person to open addresses, one after another; False as soon as one is refused."""
        if not self._spec.elicitation:
            return False
        with self._calls.paused():
            for params in addresses[:ADDRESS_LIMIT]:
                answer = await answer_elicitation(
                    params,
                    server_name=self._spec.name,
                    agent_name=", ".join(self._calls.agent_names),
                    human=self._calls.person(self._offered.human),
                )
                if answer.action != "accept":
                    return False
        return len(addresses) <= ADDRESS_LIMIT

    async def roots(
        self,
        context: ClientRequestContext,  # noqa: ARG002 - the SDK passes it by name
    ) -> ListRootsResult | ErrorData:
        """Answer `roots/list`."""
        return answer_roots(self._spec.roots)
