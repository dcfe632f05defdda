"""Functions of the agent `toolbox`."""

from __future__ import annotations


def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b


def broken() -> str:
    """Raise an error."""
    msg = "it is broken"
    raise ValueError(msg)


def structured() -> dict[str, object]:
    """Return an object."""
    return {"one": 1, "list": [True, None]}
