"""Nothing found takes the name of something that was given or is built in."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

import fast_agent
from fast_agent import FastAgent
from fast_agent.mcp.server import from_command_line
from fast_agent.trust.gate import TrustOptions
from fast_agent.trust.taken_names import BUILT_IN_TOOLS

FOUND = ".fast-agent/agent-cards"


class Project:
    """A found project beside the home and the cards of a person."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.root = directory / "desk"
        self.root.mkdir()
        (directory / "home").mkdir()

    def write(self, name: str, text: str) -> str:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)

    def card(self, name: str, *fields: str) -> str:
        return self.write(name, "\n".join(("---", "model: passthrough", *fields, "---", "Hi.\n")))

    def program(self, *cards: str, everything: bool = False) -> FastAgent:
        home = str(self.directory / "home")
        program = FastAgent(
            cwd=self.root,
            environ={"PATH": os.environ["PATH"], "FAST_AGENT_HOME": home, "HOME": home},
            trust=TrustOptions(everything=everything),
        )
        found = [FOUND] if (self.root / FOUND).exists() else []
        program.expect(cards=[*cards, *found], found=found, optional=found)
        return program

    def load(self, program: FastAgent, *cards: str) -> list[str]:
        """Load the cards, and return the lines about what is left out."""
        found = [FOUND] if (self.root / FOUND).exists() else []
        program.load(cards=[*cards, *found], found=found, optional=found)
        return list(program.admission.decisions.lines())


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.mark.spec("TR-F6.1a", "TR-F6.2")
def test_a_found_agent_takes_no_name_of_a_given_one(project: Project) -> None:
    given = project.card("own/helper.md", "shell: true", "description: mine")
    project.card(f"desk/{FOUND}/helper.md", "description: theirs", "default: true")
    project.card(f"desk/{FOUND}/lead.md", "agents: [helper]")
    project.card(f"desk/{FOUND}/plain.md", "default: true")
    program = project.program(given)
    lines = project.load(program, given)
    assert program.load_set.cards["helper"].config.description == "mine"
    assert program.load_set.default == "helper"
    place = f"{FOUND}/helper.md"
    assert lines[0].startswith(f"agent `helper` of {place} is left out: something you gave")
    # What would have called the found one would reach the given one.
    assert "your agent `helper` is called by `lead`" in lines[1]
    assert list(program.load_set.cards) == ["helper", "plain"]


@pytest.mark.spec("TR-F6.1a", "TR-F6.2")
def test_nor_that_of_an_agent_made_in_python(project: Project) -> None:
    project.card(f"desk/{FOUND}/helper.md", "default: true")
    program = project.program()
    program.agent("helper", "Mine.", model="passthrough")
    lines = project.load(program)
    assert [one.partition(" of ")[0] for one in lines] == ["agent `helper`"]
    assert program.load_set.cards["helper"].config.instruction == "Mine."


@pytest.mark.spec("TR-F6.1a")
def test_a_found_file_takes_no_server_of_the_home(project: Project) -> None:
    project.write(
        "home/fastagent.config.yaml",
        "mcp: {servers: {docs: {url: 'https://mine.example/mcp'}}}\n",
    )
    theirs = "docs: {url: 'https://theirs.example/mcp'}, other: {url: 'https://o.example/mcp'}"
    project.write("desk/fastagent.secrets.yaml", f"mcp: {{servers: {{{theirs}}}}}\n")
    program = project.program(everything=True)
    docs, other = (program.settings.mcp.servers[name] for name in ("docs", "other"))
    assert (docs.url, docs.grant) == ("https://mine.example/mcp", None)
    assert other.grant is not None
    (line, *_) = program.admission.decisions.lines()
    assert line.startswith("server `docs` of ")
    assert "fastagent.secrets.yaml" in line


@pytest.mark.spec("TR-F6.1a")
def test_nor_one_of_an_option(project: Project) -> None:
    project.write(
        "desk/fastagent.config.yaml", "mcp: {servers: {docs: {url: 'https://theirs.example'}}}\n"
    )
    card = project.card("own/mine.md", "servers: [docs]")
    program = project.program(everything=True)
    program.expect(reaching=["--stdio docs"])
    assert "docs" not in program.settings.mcp.servers
    program.add_server(from_command_line("docs", directory=project.root))
    program.load(cards=[card])
    assert program.server_names == ("docs",)


@pytest.mark.spec("TR-F6.1a")
def test_a_found_file_takes_no_alias_and_no_name_of_a_model_or_provider(project: Project) -> None:
    names = ("sonnet", "passthrough", "local", "openai", "generic", "mine", "gpt")
    aliases = "".join(f"  {name}: passthrough\n" for name in names)
    project.write("desk/fastagent.config.yaml", f"model_aliases:\n{aliases}")
    program = project.program(everything=True)
    assert list(program.settings.model_aliases) == ["mine"]
    lines = list(program.admission.decisions.lines())
    taken = [f"model alias `{name}`" for name in names if name != "mine"]
    assert [one.partition(" of ")[0] for one in lines] == taken


@pytest.mark.spec("TR-F6.1a")
def test_a_found_function_takes_no_name_of_a_tool_of_the_program(project: Project) -> None:
    project.card(
        f"desk/{FOUND}/lead.md",
        "function_tools: [tools.py:execute, tools.py:other]",
    )
    project.write(
        f"desk/{FOUND}/tools.py", "def execute() -> int:\n    return 1\n\nother = execute\n"
    )
    program = project.program(everything=True)
    lines = project.load(program)
    assert program.load_set.cards["lead"].config.function_tools == ("tools.py:other",)
    assert lines[0].startswith(f"tool `execute` of `lead`, {FOUND}/lead.md, is left out")


@pytest.mark.spec("TR-F6.1a")
def test_the_names_of_the_tools_of_the_program_are_known() -> None:
    known: set[str] = set()
    for file in Path(fast_agent.__file__).parent.rglob("*.py"):
        tree = ast.parse(file.read_text("utf-8"))
        texts = {
            ast.unparse(target): node.value.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "ToolSpec" and node.args:
                first = node.args[0]
                name = first.value if isinstance(first, ast.Constant) else None
                name = name or texts.get(ast.unparse(first))
                if isinstance(name, str):
                    known.add(name)
    assert known == BUILT_IN_TOOLS
