"""Runs of a batch whose conversation the provider compacted between two turns."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.models.conftest import OpenAIWire, start_wire
from tests.models.test_native_compaction import compacted, said, sent

if TYPE_CHECKING:
    from tests.models.conftest import StartWire

__all__ = ["start_wire"]

ANN = "---\nmodel: openai.gpt-5\n---\nBe kind.\n"
TWICE = "---\ntype: chain\ndefault: true\nsequence: [ann, ann]\n---\n"


def run_fast_agent(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    program = str(Path(sys.executable).with_name("fast-agent"))
    environ = {"HOME": str(directory), "FAST_AGENT_HOME": str(directory / "home"), "PATH": ""}
    return subprocess.run(
        [program, *words], cwd=directory, env=environ, capture_output=True, text=True, check=False
    )


@pytest.mark.spec("CONTEXT-8")
def test_a_resumed_run_sends_the_compact_form_it_was_given_before(
    start_wire: StartWire, tmp_path: Path
) -> None:
    refused = OpenAIWire.error(400, "no such thing")
    wire = start_wire(said("the first answer", 900), compacted("b3BhcXVl"), refused, said("done"))
    (tmp_path / "ann.md").write_text(ANN)
    (tmp_path / "twice.md").write_text(TWICE)
    (tmp_path / "in.jsonl").write_text('"the first question"\n')
    (tmp_path / "fast-agent.yaml").write_text(
        f"openai: {{base_url: '{wire.url}', api_key: k-secret}}\n"
        "model_facts: {openai.gpt-5: {context_window: 1000}}\n"
    )
    files = ("-c", "fast-agent.yaml", "--input", "in.jsonl", "--output", "out.jsonl")
    failed = run_fast_agent(tmp_path, "batch", "twice.md", "--card", "ann.md", *files, "--quiet")
    assert [one.path for one in wire.seen] == [
        "/responses", "/responses/compact", "/responses"], failed.stderr  # fmt: skip
    (run,) = json.loads(run_fast_agent(tmp_path, "runs", "list", "--json").stdout)
    resumed = run_fast_agent(tmp_path, "runs", "resume", run["id"], "--quiet")
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads((tmp_path / "out.jsonl").read_text())["output"] == "done"
    assert [one.path for one in wire.seen[3:]] == ["/responses"]
    assert "b3BhcXVl" in sent(wire, 3)
    assert "the first question" not in sent(wire, 3)
