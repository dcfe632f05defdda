"""The file of approvals: whole, owned, shared by processes, and never trusted when damaged."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from fast_agent.errors import ConfigError
from fast_agent.registry.approvals import CardApprovals
from fast_agent.registry.card_code import CardCode

if TYPE_CHECKING:
    from pathlib import Path


def code(path: str, text: str = "one", **files: str) -> CardCode:
    return CardCode(path, path, ("ann",), ("shell",), files, text)


@pytest.fixture
def approvals(tmp_path: Path) -> CardApprovals:
    return CardApprovals(tmp_path / "home")


@pytest.mark.spec("APPROVAL-2", "APPROVAL-7")
def test_an_approval_is_for_one_state_of_one_file(approvals: CardApprovals) -> None:
    assert approvals.standing(code("/a")) == "new"
    approvals.approve([code("/a", x="1"), code("/b")])
    assert approvals.standing(code("/a", x="1")) == "approved"
    assert approvals.standing(code("/a", x="2")) == "changed"
    assert approvals.standing(code("/a")) == "changed"
    assert approvals.standing(code("/a", "two", x="1")) == "changed"
    assert approvals.standing(code("/c", x="1")) == "new"
    assert approvals.revoke(["/a", "/never"]) == ("/a",)
    assert approvals.standing(code("/a", x="1")) == "new"
    assert approvals.standing(code("/b")) == "approved"
    assert approvals.path.stat().st_mode & 0o777 == 0o600
    assert approvals.path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.spec("APPROVAL-7")
@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '"x"', '{"/a": "sha256:0"}', '{"/a": {"fingerprint": 1, "files": []}}',
     '{"/a": {"fingerprint": "x"}}', "[" * 100_000, "\0", "{}" + " " * (5 << 20)],
)  # fmt: skip
def test_a_damaged_file_approves_nothing(
    approvals: CardApprovals, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    approvals.approve([code("/a")])
    approvals.path.write_text(text)
    with caplog.at_level(logging.WARNING):
        assert approvals.standing(code("/a")) == "new"
    assert "no card counts as approved" in caplog.text


@pytest.mark.spec("APPROVAL-7")
def test_a_link_in_its_place_is_not_read(approvals: CardApprovals, tmp_path: Path) -> None:
    other = CardApprovals(tmp_path / "other")
    other.approve([code("/a")])
    approvals.path.parent.mkdir()
    approvals.path.symlink_to(other.path)
    assert approvals.standing(code("/a")) == "new"


@pytest.mark.spec("APPROVAL-7")
def test_a_home_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    with pytest.raises(ConfigError, match="the approval cannot be kept"):
        CardApprovals(tmp_path / "home").approve([code("/a")])


@pytest.mark.spec("APPROVAL-7")
def test_several_processes_lose_no_approval(approvals: CardApprovals, tmp_path: Path) -> None:
    program = (
        "import sys, pathlib\n"
        "from fast_agent.registry.approvals import CardApprovals\n"
        "from fast_agent.registry.card_code import CardCode\n"
        "home, name = pathlib.Path(sys.argv[1]), sys.argv[2]\n"
        "for number in range(15):\n"
        "    path = f'/{name}/{number}'\n"
        "    CardApprovals(home).approve([CardCode(path, path, (), (), {}, name)])\n"
    )
    home = str(tmp_path / "home")
    children = [subprocess.Popen([sys.executable, "-c", program, home, name]) for name in "abc"]
    assert [child.wait() for child in children] == [0, 0, 0]
    assert len(approvals.all()) == 45
    assert sorted(path.name for path in approvals.path.parent.iterdir()) == [
        "card-approvals.json",
        "card-approvals.lock",
    ]
