"""The tool of the clerk: it books an order where a restart finds it."""

from pathlib import Path

from fast_agent import ToolContext


def book(order: str, context: ToolContext) -> str:
    """Book an order."""
    # A call that is repeated after a kill has the key of the first, and books nothing again.
    Path("booked").mkdir(exist_ok=True)
    (Path("booked") / context.idempotency_key).write_text(order, encoding="utf-8")
    return f"booked {order}"
