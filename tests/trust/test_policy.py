"""Policies: what passes without a question, what never does, and whose word counts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.config.fields import DenySettings, TrustSettings
from fast_agent.config.load import load_settings
from fast_agent.errors import ConfigError
from fast_agent.text.yaml_document import parse_yaml
from fast_agent.trust.effect import Effect, Holder
from fast_agent.trust.policy import Policy, check_own, own_text, read_policy

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonValue
    from fast_agent.trust.effect import EffectKind

DIGEST = f"sha256:{'0' * 64}"


def effect(kind: EffectKind, *terms: str, refusal: str | None = None) -> Effect:
    return Effect(kind, "x", Holder("card", "lead"), "lead.md", terms=terms, refusal=refusal)


ALLOWED = TrustSettings(
    hosts=("docs.acme.com", "*.example.com"),
    commands=("uvx mcp-server-time==2026.1.1", "python 'my server.py'"),
    variables={"ACME_TOKEN": "docs.acme.com"},
)
TABLE: list[tuple[EffectKind, tuple[str, ...], bool]] = [
    ("connect", ("https", "docs.acme.com", "443"), True),
    ("connect", ("https", "DOCS.acme.com.", "443"), True),
    ("connect", ("http", "docs.acme.com", "80"), False),
    ("connect", ("https", "acme.com", "443"), False),
    ("connect", ("https", "evil-docs.acme.com", "443"), False),
    ("connect", ("https", "a.example.com", "443"), True),
    ("connect", ("https", "a.b.example.com", "443"), True),
    ("connect", ("https", "example.com", "443"), False),
    ("connect", ("https", "badexample.com", "443"), False),
    ("run", ("uvx", "mcp-server-time==2026.1.1"), True),
    ("run", ("uvx", "mcp-server-time==2026.1.1", "--more"), False),
    ("run", ("PATH=/evil", "uvx", "mcp-server-time==2026.1.1"), False),
    ("run", ("python", "my server.py"), True),
    ("run", ("python", "my", "server.py"), False),
    ("run", (), False),
    ("send", ("ACME_TOKEN", "docs.acme.com"), True),
    ("send", ("ACME_TOKEN", "evil.com"), False),
    ("send", ("OTHER", "docs.acme.com"), False),
    ("send", (), False),
    ("read", (), False),
    ("write", (), False),
    ("use", (), False),
    ("ease", (), False),
]


@pytest.mark.spec("TR-C1.1", "TR-C2.1")
@pytest.mark.parametrize(("kind", "terms", "passes"), TABLE)
def test_what_a_policy_lets_pass(kind: EffectKind, terms: tuple[str, ...], passes: bool) -> None:
    for policy in (Policy(home=ALLOWED), Policy(machine=ALLOWED)):
        assert policy.allows(effect(kind, *terms)) is passes
    assert not Policy().allows(effect(kind, *terms))
    assert Policy(everything=True).allows(effect(kind, *terms))
    assert not Policy(everything=True).allows(effect(kind, *terms, refusal="outside"))


@pytest.mark.spec("TR-C1.2")
@pytest.mark.parametrize(
    ("kind", "terms", "denied"),
    [
        ("connect", ("https", "evil.com", "443"), True),
        ("connect", ("http", "a.evil.com", "80"), False),
        ("run", ("npx", "bad"), True),
        ("run", ("A=b", "npx", "bad"), True),
        ("run", ("npx", "bad", "more"), False),
        ("run", ("A=b",), False),
        ("send", ("SECRET", "good.com"), True),
        ("send", ("PLAIN", "evil.com"), True),
        ("send", ("PLAIN", "good.com"), False),
        ("write", (), False),
    ],
)
def test_deny_is_before_all_and_over_trust(
    kind: EffectKind, terms: tuple[str, ...], denied: bool
) -> None:
    deny = TrustSettings(
        deny=DenySettings(hosts=("evil.com",), commands=("npx bad",), variables=("SECRET",))
    )
    allow = TrustSettings(
        hosts=("evil.com",), commands=("npx bad",), variables={"SECRET": "good.com"}
    )
    for policy in (
        Policy(home=allow, machine=deny, everything=True),
        Policy(home=deny, machine=allow, everything=True),
    ):
        assert policy.denies(effect(kind, *terms)) is denied
        assert policy.allows(effect(kind, *terms)) is not denied


@pytest.mark.spec("TR-A5.1", "TR-A5.2a")
def test_own_reaches_into_no_repository_nested_in_it(tmp_path: Path) -> None:
    mine = tmp_path.resolve() / "mine"
    (mine / "repo" / ".git").mkdir(parents=True)
    (mine / "repo" / "deep").mkdir()
    (mine / "tree").mkdir()
    (mine / "tree" / ".git").write_text("gitdir: elsewhere")
    (mine / "plain" / "deep").mkdir(parents=True)
    policy = Policy(home=TrustSettings(own=(mine,)))
    owned = {one: policy.owns(mine / one) for one in ("", "plain", "plain/deep", "repo", "tree")}
    assert owned == {"": True, "plain": True, "plain/deep": True, "repo": False, "tree": False}
    assert not policy.owns(mine / "repo" / "deep")
    assert not policy.owns(mine.parent)
    assert not policy.owns(mine.parent / "mine2")
    (mine / ".git").mkdir()
    assert policy.owns(mine / "plain")
    assert Policy(home=TrustSettings(own=(mine / "repo",))).owns(mine / "repo" / "deep")
    link = tmp_path / "link"
    link.symlink_to(mine)
    assert Policy(home=TrustSettings(own=(link,))).owns(mine / "plain")


@pytest.mark.spec("TR-A5.2b")
def test_what_is_too_wide_cannot_be_ones_own(tmp_path: Path) -> None:
    home = tmp_path / "people" / "me"
    home.mkdir(parents=True)
    environ = {"HOME": str(home)}
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    link = home / "link"
    link.symlink_to("/")
    for wide in (home, home.parent, Path("/"), Path("/tmp"), shared, link):
        with pytest.raises(ConfigError, match="cannot be your own"):
            check_own(wide, environ)
    (home / "src").mkdir()
    check_own(home / "src", environ)


def policy_of(tmp_path: Path, text: str, environ: dict[str, str] | None = None) -> Policy:
    file = tmp_path / "fastagent.config.yaml"
    file.write_text(text)
    return read_policy(file, environ or {}, machine_file=tmp_path / "none")


@pytest.mark.spec("TR-C1.1")
def test_a_policy_is_read_from_the_home(tmp_path: Path) -> None:
    text = (
        "default_model: local\ntrust:\n  own: [src]\n  hosts: ['*.a.com']\n  commands: [x y]\n"
        "  variables: {T: a.com}\n  deny: {hosts: [b.com]}\n  ask: false\n"
    )
    (tmp_path / "src").mkdir()
    policy = policy_of(tmp_path, text)
    assert policy.home == TrustSettings(
        own=(tmp_path / "src",), hosts=("*.a.com",), commands=("x y",),
        variables={"T": "a.com"}, deny=DenySettings(hosts=("b.com",)), ask=False,
    )  # fmt: skip
    assert not policy.may_ask
    assert policy_of(tmp_path, "default_model: local\n") == Policy()
    assert read_policy(None, {}, machine_file=tmp_path / "none") == Policy()


@pytest.mark.spec("TR-C1.1")
@pytest.mark.parametrize(
    "text",
    ["trust: 1", "trust: {owns: []}", "trust: {hosts: a.com}", "trust: {ask: 'no'}",
     "trust: {own: [/]}", "trust: [", "trust: {deny: {ask: true}}"],
)  # fmt: skip
def test_a_wrong_policy_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError):
        policy_of(tmp_path, text)


@pytest.mark.spec("TR-C1.2")
def test_the_machines_policy_is_roots_alone(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can write root's file")
    folder = tmp_path / "etc"
    folder.mkdir(mode=0o755)
    file = folder / "trust.yaml"
    file.write_text("hosts: [a.com]\n")
    file.chmod(0o644)
    read = read_policy(None, {}, machine_file=file)
    assert read.machine.hosts == ("a.com",)
    for change in (
        lambda: file.chmod(0o664),
        lambda: file.chmod(0o646),
        lambda: (file.chmod(0o644), os.chown(file, 1_234, 0)),
        lambda: (os.chown(file, 0, 0), folder.chmod(0o777)),
    ):
        change()
        assert read_policy(None, {}, machine_file=file) == Policy()


@pytest.mark.spec("TR-Q6.2")
def test_an_image_says_in_the_machines_file_what_may_act(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can write root's file")
    (tmp_path / "srv").mkdir()
    file = tmp_path / "trust.yaml"
    file.write_text(f"own: [{tmp_path}/srv]\ncommands: [python serve.py]\n")
    file.chmod(0o644)
    tmp_path.chmod(0o755)
    image = read_policy(None, {}, machine_file=file)
    assert image.owns(tmp_path.resolve() / "srv")
    assert image.allows(effect("run", "python", "serve.py"))


@pytest.mark.spec("TR-Q6.1a")
def test_only_digests_approve_by_the_environment(tmp_path: Path) -> None:
    none = tmp_path / "none"
    other = f"sha256:{'a' * 64}"
    environ = {"FAST_AGENT_TRUST": f" {DIGEST}, {other},"}
    assert read_policy(None, environ, machine_file=none).digests == {DIGEST, other}
    for wrong in ("1", "true", "*", "sha256:", f"md5:{'0' * 64}", DIGEST[:-1], f"{DIGEST} {other}"):
        with pytest.raises(ConfigError, match="not a digest"):
            read_policy(None, {"FAST_AGENT_TRUST": wrong}, machine_file=none)


@pytest.mark.spec("TR-A7.2")
def test_what_the_product_started_approves_nothing(tmp_path: Path) -> None:
    marked = {"FAST_AGENT_STARTED_BY": "1"}
    none = tmp_path / "none"
    assert read_policy(None, marked, machine_file=none) == Policy()
    with pytest.raises(ConfigError, match="nothing can be approved here"):
        read_policy(None, marked, everything=True, machine_file=none)
    with pytest.raises(ConfigError, match="nothing can be approved here"):
        read_policy(None, {**marked, "FAST_AGENT_TRUST": DIGEST}, machine_file=none)


def test_the_environment_is_no_policy(tmp_path: Path) -> None:
    environ = {"TRUST__ASK": "false", "TRUST__OWN": "/", "HOME": str(tmp_path)}
    load_settings(cwd=tmp_path, environ=environ, home=tmp_path / "home")
    assert read_policy(None, environ, machine_file=tmp_path / "none") == Policy()


@pytest.mark.spec("TR-A5.1")
@pytest.mark.parametrize(
    "text",
    ["", "\n", "# only a comment", "default_model: local", "default_model: local\n",
     "trust:\n  ask: false\n", "trust:\n    # why\n    ask: false\nshell: {}\n",
     "trust: {ask: false}\n", "trust:\n  own: [/old]\n  ask: true\n",
     "trust:\n  own:\n    - /old\n    - /older\n  ask: true\n", "trust:\n  own:\n  - /old\n",
     "trust:\n  own: []\n", "trust:\n  own:\n    - /old\nshell:\n  timeout_seconds: 1\n"],
)  # fmt: skip
def test_own_is_written_into_any_configuration(text: str) -> None:
    read = parse_yaml(text).value
    before: dict[str, JsonValue] = dict(read) if isinstance(read, dict) else {}
    changed = own_text(text, [Path("/a b"), Path("/ü: [x]")])
    after = parse_yaml(changed).value
    assert isinstance(after, dict)
    trust = before.get("trust")
    known = trust if isinstance(trust, dict) else {}
    assert after == {**before, "trust": {**known, "own": ["/a b", "/ü: [x]"]}}
    assert [line for line in text.splitlines() if "#" in line] == [
        line for line in changed.splitlines() if "#" in line
    ]


@given(st.lists(st.text(min_size=1).map(lambda one: Path("/" + one)), max_size=4))
def test_any_directory_can_be_written(own: list[Path]) -> None:
    try:
        changed = own_text("trust:\n  own: [/x]\n", own)
    except ConfigError:
        return  # what YAML cannot hold is left to the person
    assert parse_yaml(changed).value == {"trust": {"own": [str(one) for one in own]}}


@pytest.mark.parametrize(
    "text", ["trust: 1", "- a", "trust: {a: [", "trust: &x {own: [/o]}\nb: *x"]
)
def test_a_configuration_that_cannot_be_changed_safely_is_left_to_the_person(text: str) -> None:
    with pytest.raises(ConfigError, match="cannot be changed automatically"):
        own_text(text, [Path("/a")])
