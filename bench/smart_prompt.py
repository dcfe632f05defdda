"""The system prompt of a smart agent: an index of documents, against the documents themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.figure import Figure, Goal
from bench.samples import Samples
from fast_agent.prompt.instruction import internal_index
from fast_agent.resources.internal.provider import InternalProvider
from fast_agent.resources.resource import estimate
from fast_agent.runtime.smart.smart_agent import smart_instruction

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.setup import Setup

MAX_TOKENS = 1_500
INDEX = "{{agentInternalResources}}"


def figures(setup: Setup) -> Iterator[Figure]:
    """Count tokens of both prompts, estimated as the manifest estimates them."""
    del setup
    index_first, inlined = tokens()
    yield Figure(
        name="smart prompt, index first",
        unit="tokens",
        ours=Samples.of([index_first]),
        goal=Goal(MAX_TOKENS),
    )
    yield Figure(
        name="smart prompt, documents inlined",
        unit="tokens",
        ours=Samples.of([inlined]),
    )
    yield Figure(
        name="smart prompt, inlined over index first",
        unit="x",
        ours=Samples.of([inlined / index_first]),
    )


def tokens() -> tuple[int, int]:
    """Count the prompt with the index, and with what the index names in its place."""
    prompt = smart_instruction("Help with what you are asked.")
    provider = InternalProvider()
    documents = "\n\n".join(provider.text_of(document) for document in provider.index)
    return (
        estimate(len(prompt.replace(INDEX, internal_index()))),
        estimate(len(prompt.replace(INDEX, documents))),
    )
