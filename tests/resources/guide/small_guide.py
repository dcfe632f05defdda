"""A small guide on disk for tests: three categories, two collections, seven files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fast_agent.resources.guide.config import load_guide
from fast_agent.resources.guide.provider import GuideProvider
from fast_agent.resources.resource import Limits

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fast_agent.text.json_value import JsonObject

META: JsonObject = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
GUIDE = """\
categories: { howto: { dir: guides }, api: {}, both: {} }
collections: { start: { members: [howto/install] }, both: { members: [api] } }
"""
INSTALL = """\
---
title: Install it
description: How to install
why: Comes first
priority: 0.9
audience: [user, assistant]
type: guide
tags: [setup, linux]
owner: me
---
# Heading
"""


def write(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def make_root(place: Path) -> Path:
    """Write the guide's documents and configuration below a directory."""
    return write(
        place,
        {
            ".guide.yaml": GUIDE,
            "guides/install.md": INSTALL,
            "guides/use.md": "\ufeff\n# Use it #\n\ntext",
            "guides/plain.txt": "plain",
            "api/ref.md": "no heading",
            "api/what?.md": "question",
            "both/own.md": "own",
        },
    )


def provider(root: Path, limits: Limits | None = None) -> GuideProvider:
    return GuideProvider(load_guide(root, "docs"), limits or Limits())


def settle(root: Path) -> None:
    """Make every date old, so that none is too recent to be trusted."""
    for folder, _, files in os.walk(root):
        for name in (*files, "."):
            os.utime(os.path.join(folder, name), (1_600_000_000, 1_600_000_000))  # noqa: PTH118


def listed(guide: GuideProvider) -> dict[str, JsonObject]:
    return {one.uri.text: one.data for one in guide.resources().values()}
