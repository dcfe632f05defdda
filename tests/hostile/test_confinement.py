"""Found sets stay inside their root, whatever their cards name and whoever loads them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from tests.card_writer import card_writer
from tests.hostile.canary import CANARY

from fast_agent.app import FastAgent
from fast_agent.errors import TrustError
from fast_agent.mcp.guarded_http import judged
from fast_agent.mcp.web_page import fetch_card
from fast_agent.prompt.instruction import fetch_text
from fast_agent.serve.agent_server import AdminTools
from fast_agent.trust.approvals import Approvals
from fast_agent.trust.effect import Effect, Holder
from fast_agent.trust.gate import TrustOptions
from fast_agent.trust.grant import Grant
from fast_agent.trust.origin import Root

if TYPE_CHECKING:
    from pathlib import Path

    from tests.hostile.canary import Canary

    from fast_agent.trust.approvals import ApprovalStatus
    from fast_agent.trust.found_set import FoundSet

pytestmark = pytest.mark.anyio

FOUND = ".fast-agent/agent-cards"
READ = ("messages: [{}]", "model: scripted?file={}", "model: playback?file={}")


def program_in(directory: Path) -> FastAgent:
    home = str(directory.parent / "home")
    return FastAgent(cwd=directory, environ={"FAST_AGENT_HOME": home}, trust=TrustOptions())


@pytest.fixture(name="desk")
def _desk(tmp_path: Path) -> Path:
    """A project, and beside it a file of the person."""
    desk = tmp_path / "desk"
    (desk / FOUND).mkdir(parents=True)
    (tmp_path / "private.md").write_text(f"---USER\n{CANARY}\n")
    (desk / ".env").write_text(f"KEY={CANARY}\n")
    (desk / "linked.md").symlink_to(tmp_path / "private.md")
    return desk


@pytest.mark.spec("TR-G5.1a", "TR-G2.1")
@pytest.mark.parametrize("field", READ)
@pytest.mark.parametrize("name", ["../../../private.md", "../../linked.md", "../../.env", "{}"])
async def test_a_found_card_reads_nothing_outside_its_root_and_no_secret(
    desk: Path, field: str, name: str
) -> None:
    name = name.format(desk.parent / "private.md")
    card_writer(desk)(f"{FOUND}/ann.md", field.format(name))
    program = program_in(desk)
    program.load(cards=[FOUND], found=[FOUND])
    with pytest.raises(TrustError) as caught:
        program.admission.require(None)
    assert "  read  " in str(caught.value)
    assert CANARY not in str(caught.value)
    with pytest.raises(TrustError, match="may not be read"):
        Grant(desk).check_read(desk / FOUND / name)
    # What a person named may be read.
    if "messages" in field and ".env" not in name:
        named = program_in(desk)
        named.load(cards=[FOUND])
        async with named.run(model="passthrough") as app:
            assert CANARY in str(app["ann"].history[0])


@pytest.mark.spec("TR-G2.1")
@pytest.mark.parametrize("link", [False, True])
async def test_a_found_card_writes_nothing_outside_its_root(desk: Path, link: bool) -> None:
    target = desk.parent / "rc"
    name = "../../rc" if link else "../../../rc"
    if link:
        (desk / "rc").symlink_to(target)
    write = card_writer(desk)
    write(f"{FOUND}/kid.md", f"messages: [{name}]", "model: passthrough")
    write(f"{FOUND}/mum.md", "agents: [kid]", "child_history: {kid: {merge_target: messages}}")
    program = program_in(desk)
    program.load(cards=[FOUND], found=[FOUND])
    assert set(program.admission.left_out) == {"kid", "mum"}
    with pytest.raises(TrustError, match="it is outside the project"):
        program.admission.require("mum")
    assert not target.exists()
    grant = Grant(desk)
    with pytest.raises(TrustError, match="outside the project"):
        grant.check_write(desk / FOUND / name)
    with pytest.raises(TrustError, match="outside the project"):
        Grant(desk, everything=True).check_write(desk / FOUND / name)


@pytest.mark.spec("TR-G5.1a", "TR-F2.1a")
@pytest.mark.parametrize("path", [".", "linked.md", "sub", "sub/linked.md"])
async def test_load_agents_of_a_client_follows_no_link_out_of_its_directory(
    tmp_path: Path, path: str
) -> None:
    outside = card_writer(tmp_path)("elsewhere/eve.md", "model: passthrough", body=CANARY)
    allowed = tmp_path / "allowed"
    card_writer(allowed)("ann.md", "model: passthrough")
    (allowed / "linked.md").symlink_to(outside)
    (allowed / "sub").symlink_to(outside.parent)
    program = program_in(allowed)
    answer = AdminTools(program, [allowed]).load({"path": path})
    assert ("ann" in program.names()) == (path == ".")
    assert "eve" not in program.names()
    assert "linked" not in program.names()
    assert answer.is_error == (path != ".")
    assert CANARY not in str(answer)


@pytest.mark.spec("TR-G6.1")
async def test_a_found_connection_is_asked_about_again_at_each_redirect(
    canary: Canary, tmp_path: Path
) -> None:
    asked: list[str] = []

    def check(url: str) -> None:
        asked.append(url)
        grant.check_connect(url)

    other = f"http://localhost:{canary.port}/other"
    canary.answers |= {"/page": f"{canary.url}/next", "/next": other, "/other": "reached"}
    terms = ("http", "127.0.0.1", str(canary.port))
    here = Effect("connect", canary.url, Holder("card", "ann"), "ann.md", terms=terms)
    grant = Grant(tmp_path, frozenset({here}))

    async def card(address: str) -> str:
        return fetch_card(address, check).text

    for fetch in (partial(fetch_text, max_bytes=1000, timeout=30, check=check), card):
        asked.clear()
        canary.heard.clear()
        with pytest.raises(TrustError, match="localhost"):
            await fetch(f"{canary.url}/page")
        assert asked == [f"{canary.url}/page", f"{canary.url}/next", other]
        assert len(canary.heard) == 2
        assert not any("strange=1" in one for one in canary.heard), "no cookies"
        assert await fetch(f"{canary.url}/other") == "reached"


@pytest.mark.spec("TR-G6.1")
@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("evil.example", "127.0.0.1"),
        ("evil.example", "10.1.2.3"),
        ("evil.example", "169.254.169.254"),
        ("evil.example", "::1"),
        ("evil.example", "::ffff:127.0.0.1"),
        ("evil.example", "fe80::1%eth0"),
        ("evil.example", "0.0.0.0"),
        ("metadata.google.example", "100.64.0.1"),
        ("localhost", "93.184.216.34"),
    ],
)
def test_a_name_that_leads_somewhere_else_is_refused(host: str, address: str) -> None:
    with pytest.raises(TrustError, match="no connection"):
        judged(host, ["93.184.216.34", address] if host != "localhost" else [address])


@pytest.mark.spec("TR-G6.1")
@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("docs.example", "93.184.216.34"),
        ("localhost", "127.0.0.1"),
        ("127.0.0.1", "127.0.0.1"),
        ("10.1.2.3", "10.1.2.3"),
        ("printer.local", "192.168.1.9"),
    ],
)
def test_a_name_that_says_where_it_leads_may_be_approved(host: str, address: str) -> None:
    assert judged(host, [address]) == address


@pytest.mark.spec("TR-F5.1", "TR-G2.1")
def test_in_a_home_only_the_files_of_the_set_are_read_and_written(desk: Path) -> None:
    write = card_writer(desk)
    write(f"{FOUND}/ann.md", "model: passthrough")
    diary = write("diary.md", "model: passthrough", body=CANARY)
    (desk / FOUND / "eve.md").symlink_to(diary)
    (desk / FOUND / "bob.md").symlink_to(desk / FOUND / "ann.md")
    home = {"FAST_AGENT_HOME": str(desk.parent / "home"), "HOME": str(desk)}
    program = FastAgent(cwd=desk, environ=home, trust=TrustOptions())
    program.load(cards=[FOUND], found=[FOUND])
    assert list(program.load_set.cards) == ["ann", "bob"]
    assert CANARY not in str(program.snapshot.notes)
    grant = program.load_set.cards["ann"].config.grant
    assert grant is not None
    assert grant.check_read(desk / FOUND / "ann.md") == desk / FOUND / "ann.md"
    for file in (diary, desk / "new.md", desk / FOUND / "new.md"):
        with pytest.raises(TrustError):
            grant.check_read(file)
        with pytest.raises(TrustError):
            grant.check_write(file)
    # A file beside the cards is written where that was approved.
    into = Effect("write", f"{FOUND}/kept.md", Holder("card", "ann"), f"{FOUND}/ann.md")
    approved = Grant(desk, frozenset({into}), place=Root.of(desk, home))
    assert approved.check_write(desk / FOUND / "kept.md")
    with pytest.raises(TrustError):
        approved.check_write(diary)


@pytest.mark.spec("TR-F5.1")
def test_cards_that_lie_in_a_home_itself_bring_no_file_they_link_to(desk: Path) -> None:
    diary = card_writer(desk.parent)("diary.md", "model: passthrough", body=CANARY)
    card_writer(desk)("ann.md", "model: passthrough")
    other = card_writer(desk)("sub/other.md", "model: passthrough", body=CANARY)
    (desk / "eve.md").symlink_to(diary)
    (desk / "kim.md").symlink_to(other)
    home = {"FAST_AGENT_HOME": str(desk.parent / "home"), "HOME": str(desk)}
    program = FastAgent(cwd=desk, environ=home, trust=TrustOptions())
    program.load(cards=["."], found=["."])
    assert list(program.load_set.cards) == ["ann"]


@pytest.mark.spec("TR-G2.1")
def test_many_cards_are_compared_with_the_approvals_once_for_all(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = card_writer(desk)
    for number in range(40):
        write(f"{FOUND}/a{number}.md", "model: passthrough", "shell: true")
    program = program_in(desk)
    compared: list[str] = []
    standing = Approvals.standing

    def counted(self: Approvals, found: FoundSet) -> ApprovalStatus:
        compared.append(found.digest)
        return standing(self, found)

    monkeypatch.setattr(Approvals, "standing", counted)
    program.load(cards=[FOUND], found=[FOUND])
    assert len(program.admission.left_out) == 40
    assert len(compared) < 20
