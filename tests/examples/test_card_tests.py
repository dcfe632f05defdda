"""The tests of the examples pass, from their recordings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fast_agent.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.spec("TEST-1")
def test_the_cases_of_the_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["test", str(EXAMPLES), "--format", "json"])
    reported = json.loads(capsys.readouterr().out)
    assert ended.value.code == 0, reported
    files = {Path(case["file"]).name for case in reported["cases"]}
    assert files == {path.name for path in EXAMPLES.rglob("*.test.yaml")}
    assert reported["passed"] == len(reported["cases"]) >= 2
    assert not any(case["recorded"] for case in reported["cases"])
