"""JSON answers: the object in a model's text, read by hand so that a mistake can be located."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

from fast_agent.agents.output import unfenced

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonObject


def object_in(text: str) -> JsonObject:
    """Read the JSON object in an answer; text around it does not matter.

    Raises:
        ValueError: There is none.
    """
    whole = unfenced(text)
    start, end = whole.find("{"), whole.rfind("}")
    if start < 0:
        raise ValueError("the answer holds no JSON object")
    if end < start:
        raise ValueError("the answer is not JSON: the object in it has no end")
    try:
        return cast("JsonObject", json.loads(whole[start : end + 1]))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the answer is not JSON: {error}") from error
