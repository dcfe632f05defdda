"""Weigh the environment this runs in, without pip and setuptools; prints JSON, in MB of 10^6 bytes.

Imports nothing of the benchmark, for it runs in environments that hold something else.
"""

from __future__ import annotations

import json
import re
import sys
import sysconfig
from importlib.metadata import distribution, distributions
from pathlib import Path

TOOLS = frozenset({"pip", "setuptools", "wheel"})


def main(package: str) -> None:
    names = {_normal(found.metadata["Name"]) for found in distributions()} - TOOLS
    asked = [one for one in distribution(package).requires or () if "extra ==" not in one]
    code, rest = 0, 0
    # Scripts and such are left out; they are a few hundred bytes each.
    for root in {Path(sysconfig.get_path(key)) for key in ("purelib", "platlib")}:
        for file in root.rglob("*"):
            top = _normal(file.relative_to(root).parts[0])
            if file.is_symlink() or not file.is_file() or _is_tool(top):
                continue
            if file.suffix == ".pyc":
                code += file.stat().st_size
            else:
                rest += file.stat().st_size
    facts = {
        "direct": len(asked),
        "distributions": len(names),
        "size": (code + rest) / 1e6,
        "bare": rest / 1e6,
    }
    print(json.dumps(facts))


def _normal(name: str) -> str:
    return re.sub("[-_.]+", "-", name).lower()


def _is_tool(top: str) -> bool:
    return any(top == tool or re.match(rf"{tool}-\d", top) for tool in TOOLS)


main(sys.argv[1])
