"""What the README and the docs show is what happens."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from fast_agent.cli.main import main

ROOT = Path(__file__).parents[2]
PROGRAM = Path(sys.executable).with_name("fast-agent")


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, command)), cwd=cwd, text=True, capture_output=True, check=False
    )


def test_the_mistake_of_the_readme_looks_as_it_says(tmp_path: Path) -> None:
    (console,) = [one for one in blocks("README.md", "console") if "error[" in one]
    command, _, shown = console.partition("\n")
    assert command == "$ fast-agent check cards"
    (tmp_path / "cards").mkdir()
    (tmp_path / "cards/clerk.md").write_text(
        "---\ntype: agent\nname: clerk\nmodel: passthrough\nserver: [time]\n---\nYou answer.\n"
    )
    done = run(PROGRAM, "check", "cards", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.strip() == shown.strip()


def test_the_example_of_the_page_on_workflows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FAST_AGENT_HOME", str(tmp_path))
    (console,) = [one for one in blocks("docs/workflows.md", "console") if "go --card" in one]
    command, _, shown = console.removeprefix("$ ").partition("\n")
    program, *arguments = shlex.split(command)
    assert program == "fast-agent"
    done = run(PROGRAM, *arguments, cwd=ROOT)
    assert done.stderr + done.stdout == shown


def test_the_console_example_of_the_readme(tmp_path: Path) -> None:
    run(PROGRAM, "new", "cards", cwd=tmp_path)
    message = '***CALL_TOOL word_count {"text": "a b c"}'
    assert message in (ROOT / "README.md").read_text(encoding="utf-8")
    done = run(
        PROGRAM, "go", "--card", "cards", "--model", "passthrough", "--message", message,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.stdout == "3\n"


def test_pages_link_to_files_that_exist() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    missing = [
        f"{page.name}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert missing == []


def test_generated_references_are_fresh() -> None:
    done = run(sys.executable, "docs/generate.py", "--check", cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_commands_of_the_pages_on_batches_and_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FAST_AGENT_HOME", str(tmp_path / "home"))
    (tmp_path / "sorter.md").write_text("---\ntype: agent\nmodel: passthrough\n---\nSort.\n")
    (tmp_path / "reviews.jsonl").write_text('"Great soup."\n{"message": "Cold soup."}\n')
    shown = [*blocks("docs/batch.md", "sh"), *blocks("docs/durable-runs.md", "sh")]
    commands = [line for block in shown for line in block.splitlines()]
    assert len(commands) == 7
    done = run(PROGRAM, "version", cwd=tmp_path)
    for command in commands:
        program, *words = shlex.split(command)
        assert program == "fast-agent"
        if "RUN" in words:
            words[words.index("RUN")] = _run_of("Great soup.", tmp_path)
        done = run(PROGRAM, *words, cwd=tmp_path)
        assert done.returncode == 0, (command, done.stderr)
    assert done.stdout == "Great soup.\n"
    rows = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert [row["output"] for row in rows] == ["Great soup.", "Cold soup."]
    assert (tmp_path / "results.csv").read_text().startswith("id,input,ok,output")


_OWNERS = {
    "batch.md": ["batch", "runs"],
    "durable-runs.md": ["runs list", "runs show", "runs resume", "runs export", "go"],
    "postgres.md": ["serve"],
    "temporal.md": ["worker", "batch", "go"],
}
"""The commands whose options a page names alone, as in `--agent`."""


@pytest.mark.parametrize("page", list(_OWNERS))
def test_every_command_and_option_of_the_pages_on_batches_exists(
    page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def options_of(command: str) -> set[str]:
        with pytest.raises(SystemExit) as ended:
            main([*command.split(), "--help"])
        done = capsys.readouterr()
        assert ended.value.code == 0, f"{page} names `{command}`: {done.err}"
        return set(re.findall(r"--?[a-z][a-z-]*", done.out))

    owned = set[str]().union(*map(options_of, _OWNERS[page]))
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    lines = [line for block in blocks(f"docs/{page}", "sh") for line in block.splitlines()]
    found = 0
    for span in [*re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text), *lines]:
        words = span.replace("\\|", " ").replace("…", " ").replace(" fast-agent ", " ").split()
        if words[0] == "fast-agent":
            del words[0]
        elif words[0] != "runs" or len(words) < 2:
            given = {word for word in words if word.startswith("--")}
            if words[0].startswith("--"):
                assert given <= owned, f"{page}: `{span}`"
                found += 1
            continue
        commands = [words[0]]
        if words[0] in {"runs", "session"} and len(words) > 1:
            commands = [f"{words[0]} {one}" for one in words[1].split("|")]
        given = {word for word in words if re.fullmatch(r"--?[a-z][a-z-]*", word)}
        assert given <= set[str]().union(*map(options_of, commands)), f"{page}: `{span}`"
        found += 1
    assert found >= 2


def _run_of(message: str, cwd: Path) -> str:
    listed = json.loads(run(PROGRAM, "runs", "list", "--json", cwd=cwd).stdout)
    return next(one["id"] for one in listed if one["message"] == message)
