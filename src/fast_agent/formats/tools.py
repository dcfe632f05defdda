"""Names of tools in other tools, and what a card has in their place."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple, TypeAlias

Ability: TypeAlias = Literal["read", "write", "shell", "fetch", "ask"]
"""What a tool lets an agent do: `files: read`, `files: write`, `shell`, `fetch`, `human_input`."""


class Tool(NamedTuple):
    """The equivalent of a tool on a card.

    Args:
        abilities: What it lets the agent do.
        server: The MCP server it is from, or None.
        pattern: Which tools of the server, with `*` and `?`.
        agents: Agents it lets the agent call; `*` is all.
        note: What is different, or None.
    """

    abilities: frozenset[Ability] = frozenset()
    server: str | None = None
    pattern: str = "*"
    agents: tuple[str, ...] = ()
    note: str | None = None


class UnsupportedTool(NamedTuple):
    """A tool that a card has nothing for."""

    message: str
    hint: str | None
    is_unknown: bool = False


_READ: Final = frozenset[Ability]({"read"})
_WRITE: Final = frozenset[Ability]({"read", "write"})
_SHELL: Final = frozenset[Ability]({"shell"})
_FETCH: Final = frozenset[Ability]({"fetch"})
_ASK: Final = frozenset[Ability]({"ask"})
_ANY: Final = frozenset[Ability]({"read", "write", "shell", "fetch"})

_ABILITIES: Final[dict[str, frozenset[Ability]]] = {
    # Claude Code, lower-case as all of them here
    **dict.fromkeys(("read", "glob", "grep", "ls", "notebookread", "lsp"), _READ),
    **dict.fromkeys(("write", "edit", "multiedit", "notebookedit"), _WRITE),
    **dict.fromkeys(
        ("bash", "bashoutput", "killbash", "killshell", "monitor", "powershell"), _SHELL
    ),
    "webfetch": _FETCH,
    "askuserquestion": _ASK,
    # VS Code and Copilot
    **dict.fromkeys(
        (
            "codebase",
            "search",
            "usages",
            "changes",
            "filesearch",
            "textsearch",
            "listdirectory",
            "readfile",
            "findtestfiles",
            "searchresults",
            "readnotebookcelloutput",
            "getnotebooksummary",
            "problems",
            "view",
        ),
        _READ,
    ),
    **dict.fromkeys(
        (
            "editfiles",
            "createfile",
            "createdirectory",
            "editnotebook",
            "createjupyternotebook",
            "new",
            "createandrunnotebook",
            "rename",
        ),
        _WRITE,
    ),
    **dict.fromkeys(
        (
            "execute",
            "runcommands",
            "runinterminal",
            "terminallastcommand",
            "terminalselection",
            "getterminaloutput",
            "runtasks",
            "runtask",
            "gettaskoutput",
            "createandruntask",
            "runtests",
            "runtestfailure",
            "testfailure",
            "runnotebooks",
            "runnotebookcell",
            "awaitterminal",
            "killterminal",
            "shell",
            "terminal",
        ),
        _SHELL,
    ),
    **dict.fromkeys(("fetch", "web", "opensimplebrowser", "web_fetch", "webfetchtool"), _FETCH),
    **dict.fromkeys(("askquestions", "question", "ask_user", "user_prompt", "askuser"), _ASK),
    # OpenCode
    **dict.fromkeys(("list", "codesearch"), _READ),
    **dict.fromkeys(("patch", "apply_patch"), _WRITE),
    # Gemini CLI
    **dict.fromkeys(
        (
            "read_file",
            "read_many_files",
            "list_directory",
            "search_file_content",
            "grep_search",
            "file_search",
            "list_files",
            "search_files",
            "search_files_content",
            "list_directory_with_sizes",
            "directory_tree",
            "get_file_info",
            "list_allowed_directories",
            "read_multiple_files",
        ),
        _READ,
    ),
    **dict.fromkeys(
        ("write_file", "replace", "edit_file", "create_directory", "move_file"), _WRITE
    ),
    "run_shell_command": _SHELL,
}

_LOST: Final[dict[str, tuple[str, str | None]]] = {
    **dict.fromkeys(
        ("websearch", "google_web_search", "web_search", "search_web"),
        ("searches the web", "add an MCP server that searches, or let the agent fetch known pages"),
    ),
    **dict.fromkeys(
        (
            "todowrite",
            "todoread",
            "todo",
            "todos",
            "write_todos",
            "taskcreate",
            "taskupdate",
            "tasklist",
            "taskget",
            "taskoutput",
            "taskstop",
        ),
        (
            "keeps a list of tasks",
            "let the agent keep a file, or use a card of type `orchestrator`",
        ),
    ),
    **dict.fromkeys(
        ("skill", "activate_skill"),
        ("loads skills", "an agent with `skills` in its card loads them automatically"),
    ),
    **dict.fromkeys(
        ("save_memory", "memory", "resolve_memory_file_uri"),
        ("keeps a memory", "add the MCP server of a memory"),
    ),
    **dict.fromkeys(
        ("think", "sequentialthinking"), ("is for thinking", "write `model: NAME.high` in the card")
    ),
    **dict.fromkeys(
        (
            "exitplanmode",
            "enterplanmode",
            "exitworktree",
            "enterworktree",
            "slashcommand",
            "sendmessage",
            "teamcreate",
            "teamdelete",
            "toolsearch",
            "croncreate",
            "schedulewakeup",
        ),
        ("controls the program itself", None),
    ),
    **dict.fromkeys(
        (
            "extensions",
            "vscodeapi",
            "installextension",
            "runvscodecommand",
            "getprojectsetupinfo",
            "newworkspace",
            "githubrepo",
            "memory",
            "vscode",
            "switchagent",
            "newjupyternotebook",
            "configurenotebook",
            "installpythonpackage",
            "configurepythonenvironment",
        ),
        ("belongs to the editor", "an MCP server with such a tool does the same"),
    ),
}

_TOOL_SETS: Final = frozenset(
    {"read", "edit", "search", "execute", "web", "vscode", "agent", "todo", "todos", "runcommands"}
    | {"runnotebooks", "runtasks", "new", "terminal", "copilot", "notebook"}
)
"""Names before a `/` that are no MCP server."""

_CALLS: Final = frozenset({"task", "agent", "runsubagent", "custom-agent", "subagent", "delegate"})
_ARGUMENT = re.compile(r"([\w./*?-]+)\((.*)\)", re.DOTALL)
_MCP = re.compile(r"mcp__([^_](?:(?!__).)*)(?:__(.+))?", re.DOTALL)
_GEMINI_MCP = re.compile(r"mcp_([^_]+)_(.+)")


def ability_of(name: str, family: str) -> Tool | UnsupportedTool:
    """Find the equivalent of a tool on a card.

    Args:
        name: The tool, as it is named there: `Read`, `Bash(git *)`, `mcp__docs__search`, `docs/*`.
        family: The name of the format, whose servers are written in their own way.

    Returns:
        What a card has, or why it has nothing.
    """
    found = _ARGUMENT.fullmatch(name)
    if found is not None:
        return _with_argument(name, found[1], found[2], family)
    if name in {"*", "all"}:
        return Tool(_ANY)
    server = _of_server(name, family)
    if server is not None:
        return server
    word = name.rpartition("/")[2].lower() if name.partition("/")[0].lower() in _TOOL_SETS else ""
    for one in (word, name.lower(), name.lower().replace("-", "").replace("_", "")):
        if one in _CALLS:
            return Tool(agents=("*",))
        if one in _ABILITIES:
            return Tool(_ABILITIES[one])
        if one in _LOST:
            what, hint = _LOST[one]
            return UnsupportedTool(
                f"the tool `{name}` {what}, and a card has nothing like it", hint
            )
    if family == "opencode" and "_" in name.strip("_"):
        head, _, pattern = name.rpartition("_") if name.endswith("_*") else name.partition("_")
        return Tool(server=head, pattern=pattern)
    return UnsupportedTool(
        f"no tool `{name}` is known",
        "if an MCP server has it, add the server and write `tools: {SERVER: [NAME]}`",
        is_unknown=True,
    )


def _with_argument(name: str, tool: str, argument: str, family: str) -> Tool | UnsupportedTool:
    if tool.lower() in _CALLS:
        return Tool(agents=tuple(part.strip() for part in argument.split(",") if part.strip()))
    if tool.lower() == "skill":
        return UnsupportedTool(
            f"`{name}` allows a skill", "name its directory under `skills` in the card"
        )
    whole = ability_of(tool, family)
    if isinstance(whole, UnsupportedTool) or argument.strip() in {"", "*"}:
        return whole
    note = f"`{name}` allows some calls; a card allows all calls of `{tool}` or none"
    return whole._replace(note=note)


def _of_server(name: str, family: str) -> Tool | None:
    found = _MCP.fullmatch(name)
    if found is not None:
        return Tool(server=found[1], pattern=found[2] or "*")
    if family == "gemini" and (found := _GEMINI_MCP.fullmatch(name)) is not None:
        return Tool(server=found[1], pattern=found[2])
    head, slash, rest = name.partition("/")
    if slash and rest and head.lower() not in _TOOL_SETS:
        last = name.rpartition("/")
        return Tool(server=last[0].rpartition("/")[2], pattern=last[2])
    return None
