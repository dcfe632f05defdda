"""The end of a command."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

from fast_agent.cli import main

if TYPE_CHECKING:
    import pytest

PROVIDER = "fast_agent.models.providers.provider"


def test_an_import_of_a_provider_is_seen_from_its_first_module_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, PROVIDER, raising=False)
    assert main._imports_provider() is False
    half = ModuleType(PROVIDER)
    monkeypatch.setitem(sys.modules, PROVIDER, half)
    assert main._imports_provider() is True
    for is_importing in (True, False):
        monkeypatch.setattr(half, "is_importing", lambda it=is_importing: it, raising=False)
        assert main._imports_provider() is is_importing
