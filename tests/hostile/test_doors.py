"""The modules that may start, connect, import, interpolate or write: a new one has to ask a grant.

Each entry was read: it asks the grant of the card or server it acts for, acts for the person alone,
or is called by one that asked.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import fast_agent

SOURCE = Path(fast_agent.__file__).parent

CALLS = {
    "start": {"open_process", "open_leader", "Popen", "run_process", "execv", "execve", "execvp",
              "execvpe", "posix_spawn", "create_subprocess_exec", "create_subprocess_shell",
              "system"},
    "connect": {"AsyncClient", "AsyncHTTPTransport", "HTTPTransport", "create_connection",
                "open_connection", "urlopen", "streamable_http_client", "sse_client"},
    "import": {"exec", "spec_from_file_location"},
    "interpolate": {"expand", "expand_fields", "with_variables"},
    "write": {"write_atomic", "write_confined", "write_text", "write_bytes"},
}  # fmt: skip

DOORS: dict[str, set[str]] = {
    "acp/remembered.py": {"write"},
    "cards/fix.py": {"write"},
    "cards/validate.py": {"interpolate"},
    "cli/commands/fmt.py": {"write"},
    "cli/commands/new.py": {"write"},
    "cli/commands/resources.py": {"write"},
    "cli/commands/session.py": {"write"},
    "cli/commands/test.py": {"write"},  # the page that --html names
    "cli/commands/trust.py": {"write"},
    "commands/controller.py": {"start"},
    "config/layer.py": {"interpolate"},
    "engine/batch_output.py": {"write"},  # the results, where the person said
    "engine/part_store.py": {"write"},  # where the person said, by digest
    "mcp/guarded_http.py": {"connect"},
    "mcp/oauth/authorization.py": {"write"},
    "mcp/live_session.py": {"connect"},
    "mcp/oauth/login.py": {"connect"},
    "mcp/process.py": {"start"},
    "mcp/listing.py": {"write"},
    "mcp/web_page.py": {"connect"},
    "messages/file.py": {"write"},
    "models/local/pull.py": {"connect", "start"},
    "registry/admission.py": {"interpolate"},
    "resources/skill/install.py": {"write"},
    "runtime/smart/smart_agent.py": {"write"},
    "sessions/postgres/database.py": {"connect"},  # its address was approved
    "sessions/sqlite/files.py": {"write"},  # what lists of sessions show, beside them in the home
    "text/frozen.py": {"import"},
    "tools/files/file_tools.py": {"write"},  # through an editor, whose person is asked
    "tools/files/workspace.py": {"write"},  # below the workspace, with permission
    "tools/functions/loader.py": {"import"},
    "tools/shell/group_guard.py": {"start"},
    "tools/shell/process_group.py": {"start"},
    "tools/skills/gate.py": {"write"},  # of a skill that was approved, to temporary files
    "trust/address.py": {"interpolate"},
    "trust/approvals.py": {"write"},
    "trust/server_tools.py": {"write"},
    "trust/earlier_approvals.py": {"write"},
    "tui/console_commands.py": {"start"},  # the clipboard
    "tui/console_keys.py": {"interpolate"},  # of the line that is typed, no variable
    "tui/programs.py": {"start", "write"},  # the person's editor and pager, and what they typed
    "tui/setting_commands.py": {"write"},  # the configuration of the home, at `/config`
    "tui/user_shell.py": {"start"},  # what the person typed behind `!`
    "trust/grant.py": {"interpolate"},  # of paths that were approved
}


def doors_of(file: Path) -> set[str]:
    """Which of these a module calls."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", None) or getattr(node.func, "id", None)
        found.update(kind for kind, names in CALLS.items() if name in names)
        if name == "run" and ast.unparse(node.func) == "subprocess.run":
            found.add("start")
        if ast.unparse(node.func) in {
            "httpx2.stream",
            "httpx2.get",
            "httpx2.Client",
            "psycopg.connect",
            "Line.connect",  # of psycopg too
        }:
            found.add("connect")
    return found


@pytest.mark.spec("TR-G2.2")
def test_only_these_modules_act() -> None:
    found = {
        file.relative_to(SOURCE).as_posix(): kinds
        for file in sorted(SOURCE.rglob("*.py"))
        if (kinds := doors_of(file))
    }
    assert found == DOORS, "a module that acts has to ask the grant of what it acts for"
