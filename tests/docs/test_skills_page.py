"""The skill and the card that the page about skills shows work together."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "skills.md"
PROGRAM = Path(sys.executable).with_name("fast-agent")


def test_the_example_of_the_page_about_skills(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    skill, card = re.findall(r"^```markdown\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    folder = tmp_path / ".claude" / "skills" / "code-review"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(skill, encoding="utf-8")
    (folder / "checklist.md").write_text("Tests?", encoding="utf-8")
    (tmp_path / "card.md").write_text(card.replace("servers: [docs]\n", ""), encoding="utf-8")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(PROGRAM), *arguments]
        return subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, check=False)

    assert run("check", "card.md").returncode == 0
    message = '***CALL_TOOL load_skill {"name": "code-review"}'
    done = run("go", "--card", "card.md", "--model", "passthrough", "-m", message)
    assert "Read the diff first, then `checklist.md`." in done.stdout
    assert "<skill_files>\nchecklist.md\n</skill_files>" in done.stdout
