"""Fetching cards from web addresses, within bounds."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from fast_agent.cards.card_load import Fetched
from fast_agent.errors import CardError
from fast_agent.trust.address import shown_address

if TYPE_CHECKING:
    from collections.abc import Callable

TIMEOUT_SECONDS = 20.0
"""Longest wait for a remote card, as a whole and for each piece of it."""

MAX_BYTES = 1024 * 1024
"""Largest remote card."""

_REDIRECTS = 3


def fetch_card(address: str, check: Callable[[str], None] | None = None) -> Fetched:
    """Fetch the text of a card.

    Args:
        address: An `http` or `https` address.
        check: Called before each connection, redirects included; None allows all.

    Returns:
        The text, and the address it came from in the end.

    Raises:
        CardError: It cannot be had, is too large, too slow, or no UTF-8 text.
    """
    import httpx2

    guard: httpx2.BaseTransport | None = None
    if check is not None:
        from fast_agent.mcp.guarded_http import GuardedSyncTransport

        guard = GuardedSyncTransport(check)
    shown = shown_address(address)
    deadline = monotonic() + TIMEOUT_SECONDS
    final = address
    try:
        with (
            httpx2.Client(
                timeout=TIMEOUT_SECONDS,
                follow_redirects=True,
                max_redirects=_REDIRECTS,
                transport=guard,
                trust_env=guard is None,
            ) as client,
            client.stream("GET", address) as response,
        ):
            if not response.is_success:
                raise CardError(f"`{shown}` answered with status {response.status_code}")
            final = str(response.url) if response.history else address
            body = bytearray()
            for chunk in response.iter_bytes():
                body += chunk
                if monotonic() > deadline:
                    raise CardError(f"`{shown}` took longer than {TIMEOUT_SECONDS:g} seconds")
                if len(body) > MAX_BYTES:
                    raise CardError(f"`{shown}` is larger than {MAX_BYTES // 1024} KiB")
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        reason = str(error) or type(error).__name__
        raise CardError(
            f"`{shown}` cannot be fetched: {reason}", hint="check the address and the network"
        ) from error
    try:
        return Fetched(final, body.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise CardError(f"`{shown}` is not UTF-8 text") from error
