"""Effects of a found configuration: each setting's own, with its line and what is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.trust.found_project import CONFIG, SECRETS, Project

from fast_agent.cards.agent_config import AgentConfig
from fast_agent.config.settings import Settings, ShellSettings
from fast_agent.trust.address import origin_in

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.trust.effect import Effect


SAMPLING = """\
mcp:
  servers:
    t:
      url: https://a.com
      sampling:
        max_answers: 21
        model: local?path=w.gguf
      call_timeout_seconds: 3601
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path.resolve())
    made.write("server.py", "print(1)\n")
    made.write(".env", "A=1\n")
    return made


def effects(project: Project, text: str, person: Settings | None = None) -> list[Effect]:
    project.write(CONFIG, text)
    return project.effects(settings=Settings() if person is None else person)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("default_model: sonnet\nmodel_aliases: {a: haiku}\n", []),
        ("request_params: {temperature: 1, max_iterations: 9}\nshell: {timeout_seconds: 5}\n", []),
        ("mcp:\n  servers:\n    t:\n      command: uvx\n      args: [x==1]\n",
         [("run", "{bin}/uvx x==1", "server `t`", 4)]),
        ("mcp:\n  servers:\n    t:\n      target: uvx x==1\n",
         [("run", "{bin}/uvx x==1", "server `t`", 4)]),
        ("mcp:\n  servers:\n    t:\n      target: https://a.com/mcp\n      access_token: ${K}\n",
         [("connect", "https://a.com", "server `t`", 4),
          ("send", "K to https://a.com", "server `t`", 5)]),
        ("model_references:\n  a:\n    b: 'scripted?file=/etc/passwd'\n",
         [("read", "/etc/passwd", "setting `model_aliases`", 3)]),
        ("shell_execution:\n  timeout_seconds: 121\n",
         [("ease", "shell.timeout_seconds: 120 → 121", "setting `shell`", 2)]),
        ("mcp: {servers: {t: {command: uvx, enabled: false}}}\n", []),
        ("mcp:\n  servers:\n    t:\n      url: https://a.com/mcp\n      headers:\n        K: v\n",
         [("connect", "https://a.com", "server `t`", 4),
          ("send", "header `K` to https://a.com", "server `t`", 6)]),
        ("mcp: {servers: {t: {url: 'https://a.com/mcp', oauth: true}}}\n",
         [("connect", "https://a.com", "server `t`", 1),
          ("send", "your authorization to https://a.com", "server `t`", 1)]),
        ("mcp: {servers: {t: {url: 'https://a.com/mcp', oauth: false}}}\n",
         [("connect", "https://a.com", "server `t`", 1)]),
        (("mcp: {servers: {t: {url: 'https://a.com/mcp', oauth: {issuer: 'https://b.com/x',"
         " client_id: me, client_secret: s}}}}\n"),
         [("connect", "https://a.com", "server `t`", 1),
          ("send", "your authorization to https://a.com", "server `t`", 1),
          ("connect", "https://b.com", "server `t`", 1),
          ("send", "`client_secret` to https://b.com", "server `t`", 1)]),
        ("mcp: {servers: {t: {url: 'http://127.0.0.1:9/mcp?k=${KEY}'}}}\n",
         [("connect", "http://127.0.0.1:9 (this machine)", "server `t`", 1),
          ("send", "KEY to http://127.0.0.1:9 (this machine)", "server `t`", 1)]),
        ("mcp: {servers: {t: {url: 'https://${HOST}/mcp'}}}\n",
         [("connect", "https://${HOST}", "server `t`", 1),
          ("send", "HOST to https://${HOST}", "server `t`", 1)]),
        ("mcp: {servers: {t: {command: uvx, env: {A: '${KEY}'}}}}\n",
         [("run", "A='${KEY}' {bin}/uvx", "server `t`", 1),
          ("send", "KEY to `uvx`", "server `t`", 1)]),
        ("mcp: {servers: {t: {command: uvx, roots: [., .env, /etc, 'file:///etc']}}}\n",
         [("run", "{bin}/uvx", "server `t`", 1), ("read", ".env", "server `t`", 1),
          ("read", "/etc", "server `t`", 1)]),
        ("openai: {base_url: 'https://evil.com/v1'}\n",
         [("connect", "https://evil.com", "setting `openai.base_url`", 1),
          ("send", "your OpenAI key to https://evil.com", "setting `openai.base_url`", 1)]),
        ("openai: {base_url: 'https://api.openai.com/v1'}\n",
         []),
        ("openai: {base_url: 'http://api.openai.com/v1'}\n",
         [("connect", "http://api.openai.com", "setting `openai.base_url`", 1),
          ("send", "your OpenAI key to http://api.openai.com", "setting `openai.base_url`", 1)]),
        ("bedrock: {base_url: 'https://x.execute-api.eu-west-1.amazonaws.com'}\n",
         [("connect", "https://x.execute-api.eu-west-1.amazonaws.com",
           "setting `bedrock.base_url`", 1),
          ("send", "your Amazon Bedrock key to https://x.execute-api.eu-west-1.amazonaws.com",
           "setting `bedrock.base_url`", 1)]),
        ("bedrock: {base_url: 'https://bedrock-runtime.eu-west-1.amazonaws.com'}\n", []),
        ("azure: {base_url: 'https://evil.openai.azure.com'}\n",
         [("connect", "https://evil.openai.azure.com", "setting `azure.base_url`", 1),
          ("send", "your Azure OpenAI key to https://evil.openai.azure.com",
           "setting `azure.base_url`", 1)]),
        ("openai: {api_key: sk-mine}\n",
         [("send", "`openai.api_key` to https://api.openai.com", "setting `openai.api_key`", 1)]),
        ("anthropic: {api_key: '${MY_KEY}'}\n",
         [("send", "MY_KEY to https://api.anthropic.com", "setting `anthropic.api_key`", 1)]),
        ("default_model: local?path=w.gguf\n",
         [("run", "model file w.gguf", "setting `default_model`", 1)]),
        ("default_model: ${NAME}\n",
         [("send", "NAME to `default_model`", "setting `default_model`", 1)]),
        ("model_aliases: {a: 'scripted?file=/etc/passwd', b: 'playback?file=h.md'}\n",
         [("read", "/etc/passwd", "setting `model_aliases`", 1)]),
        ("local: {path: m.gguf, models: {a: b.gguf}}\n",
         [("run", "model file m.gguf", "setting `local`", 1),
          ("run", "model file b.gguf", "setting `local`", 1)]),
        ("request_params: {extra_body: {a: 1}, max_iterations: 100}\n",
         [("send", "extra_body `a` to every provider", "setting `request_params`", 1),
          ("ease", "max_iterations: 99 → 100", "setting `request_params`", 1)]),
        ("request_params: {maxIterations: 1000}\n",
         [("ease", "max_iterations: 99 → 1000", "setting `request_params`", 1)]),
        ("shell:\n  timeout_seconds: 121\n  max_output_bytes: 32769\n",
         [("ease", "shell.timeout_seconds: 120 → 121", "setting `shell`", 2),
          ("ease", "shell.max_output_bytes: 32768 → 32769", "setting `shell`", 3)]),
        ("sessions: {disk_seconds: 5}\n",
         [("ease", "sessions.disk_seconds: 1 → 5", "setting `sessions`", 1)]),
        ("skills: {directories: [skills, /srv/skills, ../up]}\n",
         [("read", "/srv/skills", "setting `skills`", 1),
          ("read", "{up}/up", "setting `skills`", 1)]),
        ("skills: {directories: ['${WHERE}']}\n",
         [("read", "${WHERE}", "setting `skills`", 1),
          ("send", "WHERE to `skills`", "setting `skills`", 1)]),
        ("shell: {variables: [GH_TOKEN]}\n",
         [("send", "GH_TOKEN to every shell command", "setting `shell`", 1)]),
        (SAMPLING,
         [("connect", "https://a.com", "server `t`", 4),
          ("run", "model file w.gguf", "server `t`", 7),
          ("ease", "sampling.max_answers: 20 → 21", "server `t`", 6),
          ("ease", "call_timeout_seconds: 3600 → 3601", "server `t`", 8)]),
        ("mcp: {servers: {t: {env: {A: '1', K: '${KEY}'}, headers: {H: x}}}}\n",
         [("send", "header `H` to server `t`", "server `t`", 1),
          ("run", "server `t` with A, K", "server `t`", 1),
          ("send", "KEY to server `t`", "server `t`", 1)]),
        ("guide: {docroot: /srv, categories: {a: {dir: x}}}\n",
         [("read", "/srv", "setting `guide`", 1), ("read", "/srv/x", "setting `guide`", 1)]),
        ("guide: {docroot: docs, categories: {a: {}}}\n", []),
    ],
)  # fmt: skip
def test_each_setting_has_its_effects(
    project: Project, text: str, expected: list[tuple[str, str, str, int]]
) -> None:
    found = [(one.kind, one.subject, str(one.holder), one.line) for one in effects(project, text)]
    places = {"{bin}": str(project.bin), "{up}": str(project.root.parent)}
    wanted: list[tuple[str, str, str, int]] = []
    for kind, subject, holder, line in expected:
        for mark, place in places.items():
            subject = subject.replace(mark, place)  # noqa: PLW2901
        wanted.append((kind, subject, holder, line))
    assert found == wanted
    assert {one.path for one in effects(project, text)} <= {"fastagent.config.yaml"}


def test_a_bound_is_compared_with_the_persons_own(project: Project) -> None:
    text = "shell: {timeout_seconds: 60}\n"
    strict = Settings(shell=ShellSettings(timeout_seconds=30))
    wide = Settings(shell=ShellSettings(timeout_seconds=600))
    assert [one.subject for one in effects(project, text, strict)] == [
        "shell.timeout_seconds: 30 → 60"
    ]
    assert effects(project, text) == []
    assert effects(project, "shell: {timeout_seconds: 500}\n", wide) == []


@pytest.mark.spec("TR-P2.1")
def test_a_server_covers_the_files_it_runs(project: Project) -> None:
    text = "mcp: {servers: {t: {command: python3, args: [server.py]}}}\n"
    (one,) = effects(project, text)
    assert one.files["server.py"].startswith("sha256:")
    assert one.terms == ("python3", "server.py")
    project.write("server.py", "print(2)\n")
    assert effects(project, text) != [one]


@pytest.mark.spec("TR-P2.1")
def test_the_default_of_a_variable_may_name_a_file(project: Project) -> None:
    for name in ("server.py", "lib/part.py"):
        project.write(name, "x = 1\n")
    command = "command: python3, args: ['${X:server.py}'], env: {PYTHONPATH: '${Y:lib}'}"
    found = effects(project, f"mcp: {{servers: {{t: {{{command}}}}}}}\n")
    (one,) = (one for one in found if one.kind == "run")
    assert {"server.py", "lib/part.py"} <= set(one.files)


@pytest.mark.spec("TR-E.run")
def test_the_files_of_a_set_make_one_server(project: Project) -> None:
    project.write(SECRETS, "mcp: {servers: {t: {args: [server.py], env: {A: '1'}}}}\n")
    (one,) = effects(project, "mcp: {servers: {t: {command: python3, args: [x.py]}}}\n")
    assert one.subject == f"A=1 {project.bin}/python3 server.py"
    assert one.path == CONFIG
    assert one.files["server.py"].startswith("sha256:")


@pytest.mark.spec("TR-E.connect")
@pytest.mark.parametrize(
    ("url", "subject"),
    [
        ("http://localhost:1/", "http://localhost:1 (this machine)"),
        ("http://127.9.9.9/", "http://127.9.9.9 (this machine)"),
        ("http://2130706433/", "http://2130706433 (this machine)"),
        ("http://0x7f.1/", "http://0x7f.1 (this machine)"),
        ("http://[::1]/", "http://[::1] (this machine)"),
        ("http://[::ffff:127.0.0.1]/", "http://[::ffff:127.0.0.1] (this machine)"),
        ("http://0.0.0.0/", "http://0.0.0.0 (this machine)"),
        ("http://10.0.0.1/", "http://10.0.0.1 (private network)"),
        ("http://169.254.169.254/", "http://169.254.169.254 (private network)"),
        ("http://100.64.0.1/", "http://100.64.0.1 (private network)"),
        ("http://db.internal/", "http://db.internal (private network)"),
        ("http://printer/", "http://printer (private network)"),
        ("https://user:pw@Example.COM.:443/a?b#c", "https://example.com"),
        ("https://example.com:80/", "https://example.com:80"),
    ],
)
def test_an_address_is_named_by_scheme_host_and_port(
    project: Project, url: str, subject: str
) -> None:
    (one,) = effects(project, f"mcp: {{servers: {{t: {{url: '{url}'}}}}}}\n")
    assert one.subject == subject
    assert one.terms[0] in {"http", "https"}


@pytest.mark.spec("TR-E.connect")
@pytest.mark.parametrize("url", ["http://good.com\\@evil.com/", "ftp://a.com", "no", "http://a b/"])
def test_what_is_no_address_cannot_be_approved(project: Project, url: str) -> None:
    (one,) = effects(project, f"mcp: {{servers: {{t: {{url: '{url}'}}}}}}\n")
    assert one.refusal is not None
    assert one.terms[0] == ""


@pytest.mark.spec("TR-E.connect")
@pytest.mark.parametrize(
    ("url", "environ", "origin"),
    [
        ("https://${HOST}/mcp", {"HOST": "a.com:8443"}, ("https", "a.com", "8443")),
        ("${URL}/mcp", {"URL": "http://a.com"}, ("http", "a.com", "80")),
        ("${URL:https://b.com}", {}, ("https", "b.com", "443")),
        ("${URL}", {}, None),
        ("${URL}", {"URL": "nothing"}, None),
        ("https://c.com/${KEY}", {}, ("https", "c.com", "443")),
    ],
)
def test_an_address_in_a_variable_is_looked_up_when_it_is_used(
    project: Project, url: str, environ: dict[str, str], origin: tuple[str, str, str] | None
) -> None:
    found = effects(project, f"mcp: {{servers: {{t: {{url: '{url}'}}}}}}\n")
    assert origin_in(found[0], environ) == origin


@pytest.mark.spec("TR-E.send")
def test_no_value_of_the_environment_is_looked_up(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY", "canary-value")
    project.environ["CANARY"] = "canary-value"
    text = "mcp: {servers: {t: {command: '${CANARY}', args: ['${CANARY}']}}}\n"
    assert "canary-value" not in repr(effects(project, text))


@pytest.mark.spec("TR-E.read")
def test_the_file_of_an_alias_lies_beside_the_given_agent_that_uses_it(
    project: Project, tmp_path: Path
) -> None:
    project.write(CONFIG, "model_aliases: {quick: 'playback?file=notes.md'}\n")
    mine = AgentConfig(name="mine", source=tmp_path.resolve() / "cards/mine.md", model="quick")
    (one,) = project.effects(agents={"mine": mine})
    assert (one.kind, one.subject) == ("read", str(tmp_path.resolve() / "cards/notes.md"))
