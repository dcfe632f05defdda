"""When and how long to wait before a request is sent again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Bounds of retrying.

    Args:
        attempts: Most times a request is sent.
        first_wait: Wait before the second attempt, in seconds; it doubles from there.
        longest_wait: Longest wait that is not asked for by the provider, in seconds.
        total_wait: Most seconds spent waiting in one request, the provider's wishes included.
    """

    attempts: int = 4
    first_wait: float = 0.5
    longest_wait: float = 8.0
    total_wait: float = 60.0

    def wait(self, attempt: int, asked: float | None, jitter: float) -> float:
        """Say how long to wait after a failed attempt.

        Args:
            attempt: Its number, from 1.
            asked: Seconds the provider asked to wait, or None.
            jitter: From 0 to 1.

        Returns:
            Seconds. What the provider asked is a minimum; up to a quarter is added, so that many
            clients turned away together do not come back together.
        """
        if asked is not None:
            return asked * (1 + jitter / 4)
        backoff = min(self.first_wait * 2 ** (attempt - 1), self.longest_wait)
        return backoff * (0.75 + jitter / 4)


NO_RETRIES = RetryPolicy(attempts=1)
"""Send every request once."""
