"""Pin every dependency set with versions and hashes, and no address, into this directory.

Run by `make lock`. Each file stands alone: `pip install --require-hashes -r requirements/core.txt`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
SETS: dict[str, list[str]] = {
    "core": [],
    "local": ["--extra", "local"],
    "openai": ["--extra", "openai"],
    "anthropic": ["--extra", "anthropic"],
    "google": ["--extra", "google"],
    "temporal": ["--extra", "temporal"],
    "otel": ["--extra", "otel"],
    "all": ["--extra", "all"],
    "demo": ["--extra", "local", "--extra", "openai", "--extra", "anthropic", "--group", "demo"],
    "tracing": ["--extra", "otel", "--group", "tracing"],
    "dev": ["--extra", "all", "--group", "dev"],
    "build": ["--group", "build"],
    "audit": ["--group", "audit"],
}
OPTIONS = [
    "--universal",
    "--python-version=3.11",
    "--generate-hashes",
    # pip ignores a pin that lacks an extra another package wants, and takes the newest version.
    "--no-strip-extras",
    "--no-header",
    "--no-annotate",
    "--no-emit-index-url",
    "--no-emit-find-links",
    "--quiet",
]


def compile_set(name: str, selection: list[str]) -> None:
    """Resolve one set; versions already pinned are kept unless they no longer fit."""
    target = HERE / f"{name}.txt"
    sources = [] if name in {"audit", "build"} else ["pyproject.toml"]
    command = [sys.executable, "-m", "uv", "pip", "compile", *sources, *selection, *OPTIONS]
    command += ["--output-file", str(target)]
    subprocess.run(command, cwd=ROOT, check=True)
    text = target.read_text(encoding="utf-8")
    if "://" in text:
        sys.exit(f"{target.name} holds an address")
    print(f"{target.name}: {sum(not line.startswith(' ') for line in text.splitlines())} pinned")


if __name__ == "__main__":
    for set_name, set_selection in SETS.items():
        compile_set(set_name, set_selection)
