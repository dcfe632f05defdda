"""What configuration files are called."""

from __future__ import annotations

from typing import Final

CONFIG_NAMES: Final = ("fastagent.config.yaml", "fast-agent.yaml")
"""Names a configuration file may have, the preferred one first."""

SKILL_FOLDERS: Final = (".fast-agent/skills", ".claude/skills", ".agents/skills")
"""Where the skills of a project are, below its directory, where nothing else is said."""

SECRETS_NAMES: Final = ("fastagent.secrets.yaml",)
"""The name of the file that holds secrets."""
