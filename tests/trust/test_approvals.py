"""Approvals: which changes ask again, who may lend them, and a file that survives anything."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fast_agent.errors import ConfigError
from fast_agent.trust.approvals import Approvals, repository_of, this_machine
from fast_agent.trust.effect import Effect, Holder
from fast_agent.trust.found_set import FoundSet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fast_agent.trust.effect import EffectKind

CONFIG = "fastagent.config.yaml"
CARD = ".fast-agent/agent-cards/lead.md"


def digest(text: str) -> str:
    return f"sha256:{sha256(text.encode()).hexdigest()}"


def effect(
    kind: EffectKind = "run",
    subject: str = "/usr/bin/time-server",
    *,
    path: str = CONFIG,
    name: str = "time",
    terms: tuple[str, ...] = ("time-server",),
    **files: str,
) -> Effect:
    holder = Holder("card" if path == CARD else "server", name)
    return Effect(kind, subject, holder, path, line=3, terms=terms, files=files)


def shell() -> Effect:
    return effect(subject="any command the model chooses", path=CARD, name="lead", terms=())


def found(root: Path, *effects: Effect, texts: Mapping[str, str] | None = None) -> FoundSet:
    texts = {CONFIG: "servers", CARD: "words", **(texts or {})}
    files = {name: digest(text) for name, text in texts.items()}
    return FoundSet(root, files, effects, texts)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "desk"
    folder.mkdir()
    return folder


@pytest.fixture
def approvals(tmp_path: Path) -> Approvals:
    return Approvals(tmp_path / "home")


@pytest.mark.spec("TR-A1.1a", "APPROVAL-7")
def test_approvals_are_the_owners_alone(approvals: Approvals, root: Path) -> None:
    approvals.approve(found(root, effect()))
    assert approvals.path.stat().st_mode & 0o777 == 0o600
    assert approvals.path.parent.stat().st_mode & 0o777 == 0o700
    texts = approvals.path.parent / "approved"
    assert texts.stat().st_mode & 0o777 == 0o700
    assert all(one.stat().st_mode & 0o077 == 0 for one in texts.iterdir())


def test_a_standing_is_that_of_the_set_at_hand(approvals: Approvals, root: Path) -> None:
    one, other = found(root, effect()), found(root, effect(), shell())
    approvals.approve(one)
    for _ in range(2):
        assert approvals.standing(one).state == "approved"
        assert approvals.standing(other).added == (shell(),)
    approvals.approve(other)
    assert approvals.standing(other).state == "approved"


@pytest.mark.spec("TR-A1.1b")
@pytest.mark.parametrize(("machine", "user"), [("other", None), (None, 4_321)])
def test_approvals_of_others_count_for_nothing_and_are_kept(
    tmp_path: Path, root: Path, machine: str | None, user: int | None
) -> None:
    theirs = Approvals(tmp_path / "home", machine=machine, user=user)
    theirs.approve(found(root, effect()))
    mine = Approvals(tmp_path / "home")
    assert mine.standing(found(root, effect())).state == "new"
    assert mine.all() == ()
    assert mine.revoke([str(root)]) == ()
    mine.approve(found(root, effect()))
    mine.revoke([str(root)])
    assert theirs.standing(found(root, effect())).state == "approved"


@pytest.mark.spec("TR-A2.2")
@pytest.mark.parametrize(
    ("before", "after", "state", "added"),
    [
        ([effect()], [effect()], "approved", 0),
        ([effect(), effect("send", "K to h")], [effect()], "approved", 0),
        ([effect()], [effect(), effect("send", "K to h")], "changed", 1),
        ([effect()], [effect(subject="/bin/other")], "changed", 1),
        ([effect()], [effect("connect")], "changed", 1),
        ([effect()], [effect(name="other")], "changed", 1),
        ([effect(a="1")], [effect(a="2")], "changed", 1),
        ([effect(a="1")], [effect(a="1", b="2")], "changed", 1),
        ([effect()], [replace(effect(), line=99, notes=("x",))], "approved", 0),
        ([effect()], [], "approved", 0),
        ([], [effect()], "changed", 1),
    ],
)
def test_fewer_effects_never_ask_and_others_ask_for_the_difference(
    approvals: Approvals,
    root: Path,
    before: list[Effect],
    after: list[Effect],
    state: str,
    added: int,
) -> None:
    approvals.approve(found(root, *before))
    standing = approvals.standing(found(root, *after))
    assert standing.state == state
    assert len(standing.added) == added
    assert set(standing.added) == set(after) - set(before)
    assert set(standing.gone) == set(before) - set(after)
    assert standing.allowed == frozenset(before) & frozenset(after)


@pytest.mark.spec("TR-A2.2", "TR-A4.1")
@pytest.mark.parametrize("prose", [False, True])
def test_words_ask_again_where_they_decide_what_happens(
    approvals: Approvals, root: Path, prose: bool
) -> None:
    connect = effect(
        "connect", "https://a:443", path=CARD, name="lead", terms=("https", "a", "443")
    )
    for own in (connect, shell(), effect("use", "x and y", path=CARD), effect("write", path=CARD)):
        approvals.approve(found(root, own), prose=prose)
        again = approvals.standing(found(root, own, texts={CARD: "other words"}))
        asks = own is not connect or not prose
        assert again.state == ("changed" if asks else "approved"), own
        assert again.rewritten == ((CARD,) if asks else ())
        assert (own in again.allowed) is not asks


@pytest.mark.spec("TR-A2.2")
def test_a_change_of_a_file_without_effects_never_asks(approvals: Approvals, root: Path) -> None:
    approvals.approve(found(root, effect()))
    assert approvals.standing(found(root, effect(), texts={CARD: "new"})).state == "approved"
    assert approvals.standing(found(root, effect(), texts={"more.md": "x"})).state == "approved"


@pytest.mark.spec("TR-A2.2")
def test_fewer_effects_do_not_smuggle_words_into_a_card_with_a_shell(
    approvals: Approvals, root: Path
) -> None:
    send = effect("send", "K to h", path=CARD, name="lead")
    approvals.approve(found(root, shell(), send))
    assert approvals.standing(found(root, shell(), texts={CARD: "rm"})).state == "changed"


@pytest.mark.spec("TR-A2.2", "TR-Q1.1")
def test_a_yes_in_one_command_keeps_the_yes_of_another(approvals: Approvals, root: Path) -> None:
    """Options decide which effects a command works out of the same files: `use` of a server."""
    one, other = effect("use", "a and b", path=CARD), effect("use", "a and c", path=CARD)
    approvals.approve(found(root, shell(), one))
    approvals.approve(found(root, shell(), other))
    for own in ([shell(), one], [shell(), other], [one, other], [shell()]):
        assert approvals.standing(found(root, *own)).state == "approved", own
    third = effect("use", "a and d", path=CARD)
    assert approvals.standing(found(root, third)).added == (third,)


@pytest.mark.spec("TR-A2.2")
def test_a_yes_to_changed_files_forgets_what_was_approved_of_the_files_before(
    approvals: Approvals, root: Path
) -> None:
    one, other = effect("use", "a and b", path=CARD), effect("use", "a and c", path=CARD)
    approvals.approve(found(root, one))
    approvals.approve(found(root, other, texts={CARD: "other words"}))
    for texts in ({}, {CARD: "other words"}):
        assert one not in approvals.standing(found(root, one, texts=texts)).allowed
    approvals.approve(found(root, effect(a="1")))
    approvals.approve(found(root, effect(a="2")))
    assert approvals.standing(found(root, effect(a="1"))).state == "changed"
    assert approvals.standing(found(root, effect(a="2"))).state == "approved"


@pytest.mark.spec("TR-A2.2")
def test_a_no_is_not_added_to_a_yes(approvals: Approvals, root: Path) -> None:
    approvals.approve(found(root, shell()))
    approvals.decline(found(root, shell(), effect()))
    assert approvals.standing(found(root, shell(), effect())).state == "declined"
    approvals.approve(found(root, effect()))
    assert shell() not in approvals.standing(found(root, shell())).allowed


@pytest.mark.spec("TR-A2.2")
def test_the_approved_text_is_kept_up_to_its_bound(approvals: Approvals, root: Path) -> None:
    large = "x" * ((256 << 10) + 1)
    small = "y" * (256 << 10)
    approvals.approve(found(root, effect(), texts={"large": large, "small": small}))
    assert approvals.text_of(digest(small)) == small
    assert approvals.text_of(digest(large)) is None
    assert approvals.text_of("sha256:../approvals.json") is None
    approvals.approve(found(root, effect()))
    assert approvals.text_of(digest(small)) is None
    assert approvals.text_of(digest("words")) == "words"


def test_a_kept_text_that_was_altered_is_not_shown(approvals: Approvals, root: Path) -> None:
    approvals.approve(found(root, effect()))
    (approvals.path.parent / "approved" / digest("words")[7:]).write_text("other")
    assert approvals.text_of(digest("words")) is None


@pytest.mark.spec("TR-A6.1a")
def test_a_no_is_kept_for_exactly_this_set(approvals: Approvals, root: Path) -> None:
    approvals.decline(found(root, effect()))
    assert approvals.standing(found(root, effect())).state == "declined"
    assert approvals.standing(found(root, effect(), texts={CARD: "new"})).state == "new"
    assert approvals.standing(found(root, effect(), effect("send"))).state == "new"
    assert approvals.standing(found(root, effect())).allowed == frozenset()
    approvals.approve(found(root, effect()))
    assert approvals.standing(found(root, effect())).state == "approved"


def git(*words: str, cwd: Path) -> None:
    names = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
        cwd=cwd, check=True, capture_output=True, env={**os.environ, **names},
    )  # fmt: skip


@pytest.mark.spec("TR-A3.1")
def test_a_linked_worktree_has_the_approvals_of_its_repository(
    approvals: Approvals, root: Path, tmp_path: Path
) -> None:
    git("init", "-q", cwd=root)
    git("commit", "-q", "--allow-empty", "-m", "x", cwd=root)
    tree = tmp_path.resolve() / "tree"
    git("worktree", "add", "-q", str(tree), cwd=root)
    assert repository_of(tree) == root
    assert repository_of(root) is None
    approvals.approve(found(root, effect(), effect("send", path=CARD)))
    assert approvals.standing(found(tree, effect())).state == "approved"
    other = approvals.standing(
        found(tree, effect(), effect("send", path=CARD), texts={CARD: "other"})
    )
    assert other.state == "new"
    assert other.allowed == {effect()}
    approvals.decline(found(root, effect()))
    assert approvals.standing(found(tree, effect())).state == "new"


@pytest.mark.spec("TR-A3.1", "TR-A3.2")
def test_a_directory_that_claims_to_be_a_worktree_gets_nothing(
    approvals: Approvals, root: Path, tmp_path: Path
) -> None:
    git("init", "-q", cwd=root)
    git("commit", "-q", "--allow-empty", "-m", "x", cwd=root)
    tree, liar = tmp_path.resolve() / "tree", tmp_path.resolve() / "liar"
    git("worktree", "add", "-q", str(tree), cwd=root)
    liar.mkdir()
    (liar / ".git").write_text((tree / ".git").read_text())
    own = liar / "entry"
    own.mkdir()
    (own / "gitdir").write_text(f"{liar / '.git'}\n")
    (own / "commondir").write_text(f"{root / '.git'}\n")
    approvals.approve(found(root, effect()))
    assert repository_of(liar) is None
    (liar / ".git").write_text(f"gitdir: {own}\n")
    assert repository_of(liar) is None
    for inherits in (liar, root / "deep", root.parent):
        inherits.mkdir(exist_ok=True)
        assert approvals.standing(found(inherits, effect())).state == "new"


def test_what_nobody_can_approve_is_not_kept(approvals: Approvals, root: Path) -> None:
    outside = replace(effect("write", "/etc/passwd"), refusal="it writes outside the project")
    with pytest.raises(ConfigError, match="outside the project"):
        approvals.approve(found(root, outside))
    assert approvals.all() == ()
    approvals.approve(found(root, effect(), outside))
    standing = approvals.standing(found(root, effect(), outside))
    assert standing.state == "approved"
    assert standing.allowed == {effect()}


@pytest.mark.spec("TR-F3.2")
def test_a_home_that_is_not_the_persons_own_holds_no_approvals(tmp_path: Path, root: Path) -> None:
    Approvals(tmp_path / "home").approve(found(root, effect()))
    strange = Approvals(tmp_path / "home", readable=False)
    assert strange.standing(found(root, effect())).state == "new"
    with pytest.raises(ConfigError, match="not your own home"):
        strange.approve(found(root, effect()))


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '"x"', "[" * 100_000, "\0", "{}", '{"approvals": {}}', '{"approvals": [1]}',
     '{"approvals": [{"root": "/x"}]}', '{"approvals": null}', "{}" + " " * (17 << 20)],
)  # fmt: skip
def test_a_damaged_file_approves_nothing(
    approvals: Approvals, root: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    approvals.approve(found(root, effect()))
    approvals.path.write_text(text)
    with caplog.at_level(logging.WARNING):
        assert approvals.standing(found(root, effect())).state == "new"
    assert (text == '{"approvals": {}}') or "nothing counts as approved" in caplog.text
    approvals.approve(found(root, effect()))
    assert approvals.standing(found(root, effect())).state == "approved"


def test_every_part_of_an_approval_is_checked_when_it_is_read(
    approvals: Approvals, root: Path
) -> None:
    approvals.approve(found(root, effect(a="1")))
    whole = json.loads(approvals.path.read_text())
    entry = whole["approvals"][0]
    texts = {"root", "digest", "machine"}
    allowed = {("effects", "[]")}
    for name in entry.keys() - {"prose"}:
        for wrong in ("null", "1.5", "[]", *(() if name in texts else ('"x"',))):
            if (name, wrong) not in allowed:
                damaged = {**entry, name: json.loads(wrong)}
                approvals.path.write_text(json.dumps({"approvals": [damaged]}))
                assert approvals.standing(found(root, effect(a="1"))).state == "new", (name, wrong)
    approvals.path.write_text(json.dumps(whole))
    assert approvals.standing(found(root, effect(a="1"))).state == "approved"


def test_processes_that_approve_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    program = (
        "import sys; from pathlib import Path\n"
        "from fast_agent.trust.approvals import Approvals\n"
        "from fast_agent.trust.found_set import FoundSet\n"
        "for at in range(5):\n"
        "    Approvals(Path(sys.argv[1])).approve(FoundSet(Path(f'/{sys.argv[2]}/{at}')))\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", program, str(home), str(at)]) for at in range(4)
    ]
    assert [one.wait() for one in running] == [0] * 4
    assert len(Approvals(home).all()) == 20


def test_a_home_that_cannot_be_written_is_an_error(tmp_path: Path, root: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="the approval cannot be saved"):
        Approvals(tmp_path / "file" / "home").approve(found(root, effect()))


def test_a_machine_is_distinguished_without_naming_it() -> None:
    assert this_machine() == this_machine()
    assert len(this_machine()) == 16
    machine = Path("/etc/machine-id")
    assert not machine.exists() or machine.read_text().strip() not in this_machine()


@pytest.mark.spec("TR-F4.1b")
def test_any_change_of_a_set_that_others_may_write_to_asks_again(
    approvals: Approvals, root: Path
) -> None:
    for strange in (replace(found(root), owner="eve"), replace(found(root), is_open=True)):
        assert approvals.standing(strange).state in {"new", "changed"}
        approvals.approve(strange)
        assert approvals.standing(strange).state == "approved"
        other = replace(strange, files={**strange.files, CARD: digest("other")})
        assert approvals.standing(other).rewritten == (CARD,)
        fewer = replace(strange, files={CARD: strange.files[CARD]})
        assert approvals.standing(fewer).state == "changed"
        approvals.revoke([str(root)])
