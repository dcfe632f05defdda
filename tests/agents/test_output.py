"""Reading structured answers."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from fast_agent.agents.output import JsonOutput, TypedOutput


class Weight(BaseModel):
    note: str
    kilos: float


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_a_number_json_does_not_have_is_refused(number: str) -> None:
    text = f'{{"note": "x", "kilos": {number}}}'
    for shape in (TypedOutput(Weight), JsonOutput(Weight.model_json_schema())):
        with pytest.raises(ValueError, match=f"`{number}` is not a number JSON can hold"):
            shape.parse(text)


def test_words_that_look_like_one_are_words() -> None:
    text = '{"note": "NaN and -Infinity", "kilos": 2}'
    assert TypedOutput(Weight).parse(text) == Weight(note="NaN and -Infinity", kilos=2)
    assert JsonOutput(Weight.model_json_schema()).parse(text)
