"""Which of a bounded number of things has to end, so that no client takes them all.

Sessions, conversations and parked calls are held for clients that may never come back. When there
no room, the client that holds the most gives way, and never one that holds little.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Key = TypeVar("Key")

_SHARE: Final = 10
"""No client keeps more than this part of all while others wait."""
_NETWORK_BITS: Final = 64
"""What one user of IPv6 gets: every address in it counts as the same client."""


class FairShare(Generic[Key]):
    """What clients hold.

    Args:
        most: Maximum number of things.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._owners: dict[Key, str] = {}
        self._held: dict[str, OrderedDict[Key, None]] = {}

    def __len__(self) -> int:
        return len(self._owners)

    @property
    def full(self) -> bool:
        """Whether something has to end before more can be held."""
        return len(self._owners) >= self.most

    def add(self, key: Key, owner: str) -> None:
        """Hold one more thing for a client."""
        self._owners[key] = owner
        self._held.setdefault(owner, OrderedDict())[key] = None

    def use(self, key: Key) -> None:
        """Record that a thing was used just now; one that is not held is ignored."""
        owner = self._owners.get(key)
        if owner is not None:
            self._held[owner].move_to_end(key)

    def remove(self, key: Key) -> None:
        """Stop holding a thing; one that is not held is ignored."""
        owner = self._owners.pop(key, None)
        if owner is not None:
            held = self._held[owner]
            del held[key]
            if not held:
                del self._held[owner]

    def to_end(self, owner: str, is_idle: Callable[[Key], bool]) -> Key | None:
        """Return what has to end so that a client may hold one thing more.

        Args:
            owner: The client.
            is_idle: Whether a thing can end without ending something that is under way.

        Returns:
            The longest unused idle thing of the client that holds the most. A client that holds
            more than a tenth of all loses one that is in use, if others wait. None if nothing may
            end.
        """
        for holder in sorted(self._held, key=lambda one: len(self._held[one]), reverse=True):
            held = self._held[holder]
            idle = next((key for key in held if is_idle(key)), None)
            if idle is not None:
                return idle
            if len(held) > self.most // _SHARE:
                return None if holder == owner else next(iter(held))
        return None


@lru_cache(maxsize=1024)
def owner_of(address: str) -> str:
    """Return the client that an address denotes."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(found), _NETWORK_BITS), strict=False))
