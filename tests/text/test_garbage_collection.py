from __future__ import annotations

import gc

import pytest

from fast_agent.text.garbage_collection import collection_paused


def test_no_garbage_is_searched_for_within() -> None:
    assert gc.isenabled()
    with collection_paused():
        assert not gc.isenabled()
        with collection_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_is_searched_for_again_after_an_error() -> None:
    with pytest.raises(ValueError, match="x"), collection_paused():
        raise ValueError("x")
    assert gc.isenabled()
