from __future__ import annotations

import pytest

from fast_agent.tools.functions.function import parse_docstring


def test_sections_are_taken_apart() -> None:
    parsed = parse_docstring(
        """Add two numbers.

        Negative ones too.

        Args:
            first: The first
                number: any.
            second (int, optional): The second.

            *rest: The rest.
        Returns:
            The sum: a number.
        """
    )
    assert parsed.description == "Add two numbers.\n\nNegative ones too."
    assert parsed.parameters == {
        "first": "The first number: any.",
        "second": "The second.",
        "rest": "The rest.",
    }


@pytest.mark.parametrize("text", [None, "", "   \n  "])
def test_nothing_gives_nothing(text: str | None) -> None:
    parsed = parse_docstring(text)
    assert parsed.description == ""
    assert parsed.parameters == {}


def test_a_docstring_without_sections_is_all_description() -> None:
    assert (
        parse_docstring("See: this.\n\nArgs are many.").description
        == "See: this.\n\nArgs are many."
    )


def test_only_args_hold_parameters() -> None:
    parsed = parse_docstring("Do.\n\nRaises:\n    ValueError: never.\n\nArgs:\n    x: It.")
    assert parsed.parameters == {"x": "It."}
    assert parsed.description == "Do."
