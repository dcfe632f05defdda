from __future__ import annotations

import anyio
from bench.many_messages import AT_ONCE, ratios


def test_the_ratio_is_over_what_the_model_takes() -> None:
    (ratio,) = anyio.run(ratios, 2 * AT_ONCE, 1)
    assert ratio >= 1
