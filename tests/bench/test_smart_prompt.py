"""The figure of the smart prompt is counted from the prompt itself."""

from __future__ import annotations

import pytest
from bench.smart_prompt import MAX_TOKENS, tokens

from fast_agent.resources.internal.provider import InternalProvider


@pytest.mark.spec("INTERNAL-31")
def test_the_index_first_prompt_is_small_and_the_inlined_one_holds_every_document() -> None:
    index_first, inlined = tokens()
    documents = sum(one.tokens for one in InternalProvider().index)
    assert index_first <= MAX_TOKENS
    assert inlined > documents
    assert inlined > 10 * index_first
