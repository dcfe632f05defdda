"""Agents over stdio, for a program that would take `--transport` for an option of its own.

Run: `python tests/conformance/agents.py CARDS`.
"""

from __future__ import annotations

import sys

from fast_agent.cli.main import main

if __name__ == "__main__":
    main(["serve", "--card", sys.argv[1], "--no-session", "--transport", "stdio"])
