"""The page about guides says what is so."""

from __future__ import annotations

import contextlib
import re
import shlex
from pathlib import Path

import pytest

from fast_agent.cli.main import main
from fast_agent.config.settings import GUIDE, GUIDE_CATEGORY, GUIDE_COLLECTION
from fast_agent.resources.guide.config import load_guide
from fast_agent.resources.guide.provider import GuideProvider
from fast_agent.resources.uri import Uri

PAGE = (Path(__file__).parents[3] / "docs" / "guide.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^```\w+ (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
COMMANDS = [
    line
    for block in re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_every_uri_of_the_page_reads(root: Path) -> None:
    guide = GuideProvider(load_guide(root / "docs"))
    uris = re.findall(r"^\| `(guide://[^`]+)` \|", PAGE, re.MULTILINE)
    assert len(uris) == 8
    for uri in uris:
        assert guide.read(Uri.parse(uri))
    assert list(guide.diagnostics()) == []


def test_every_key_is_on_the_page() -> None:
    keys = re.findall(r"^\| `([a-zA-Z.]+)` \|", PAGE.split("## URIs")[0], re.MULTILINE)
    known = ["docroot"]
    for name, record in (("categories", GUIDE_CATEGORY), ("collections", GUIDE_COLLECTION)):
        known += [f"{name}.NAME.{entry.name}" for entry in record.entries]
    assert sorted(keys) == sorted(known)
    assert [entry.name for entry in GUIDE.entries] == ["docroot", "categories", "collections"]


EXPECTED = {
    "list": "guide://document/api/v2/orders.md",
    "read guide://document": "Unpack it and run `./start`.",
    "read guide://collection": "Content-Location: guide://document/api/v2/orders.md",
    "check": "no problems",
}


@pytest.mark.parametrize("command", [one for one in COMMANDS if " serve " not in one])
def test_every_command_of_the_page_runs(
    root: Path, command: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    program, *arguments = shlex.split(command)
    assert program == "fast-agent"
    with contextlib.suppress(SystemExit):  # what it printed shows whether it went well
        main(arguments)
    reported = b"".join(capsysbinary.readouterr()).decode()
    (expected,) = [text for key, text in EXPECTED.items() if f"resources {key}" in command]
    assert expected in reported
