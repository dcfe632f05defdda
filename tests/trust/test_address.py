"""Where a host leads: the internet, a private network or this machine."""

from __future__ import annotations

import pytest

from fast_agent.trust.address import PRIVATE_NETWORK, THIS_MACHINE, place_of_host

_HERE = "127.0.0.1 0.0.0.0 ::1 :: localhost a.localhost LOCALHOST. 2130706433 0x7f.1 127.1"
_HERE_TRANSLATED = (
    "::ffff:127.0.0.1 ::127.0.0.1 ::ffff:0:127.0.0.1"  # mapped, compatible, translated
    " 64:ff9b::7f00:1 64:ff9b:1::7f00:1 2002:7f00:1::"  # NAT64, 6to4
)
_NEAR = "10.1.2.3 169.254.169.254 100.64.0.1 fe80::1%eth0 fd00::1 printer desk.local a.internal"
_NEAR_TRANSLATED = "::ffff:10.0.0.1 ::10.0.0.1 64:ff9b::a9fe:a9fe 2002:a00:1::1"
_MULTICAST = "224.0.0.1 239.255.255.250 ff02::1 64:ff9b::e000:1"
_FAR = "93.184.216.34 docs.example 2606:4700::1 ::ffff:93.184.216.34 64:ff9b::5db8:d822"


@pytest.mark.spec("TR-G6.1")
@pytest.mark.parametrize(
    ("hosts", "place"),
    [
        (_HERE, THIS_MACHINE),
        (_HERE_TRANSLATED, THIS_MACHINE),
        (_NEAR, PRIVATE_NETWORK),
        (_NEAR_TRANSLATED, PRIVATE_NETWORK),
        (_MULTICAST, PRIVATE_NETWORK),
        (f"{_FAR} 2002:5db8:d822::1", ""),
    ],
)
def test_an_address_is_placed_by_where_it_ends(hosts: str, place: str) -> None:
    assert {host: place_of_host(host) for host in hosts.split()} == dict.fromkeys(
        hosts.split(), place
    )
