"""Traps of test files and guides: for each field that can act, a project in which it does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonValue

from tests.hostile.trap import CARDS, PLAIN, Acts, Spot, Trap, makes


def _test(
    acts: Acts, near: str, key: str, value: JsonValue, *options: str, **case: JsonValue
) -> Trap:
    whole: dict[str, JsonValue] = {"cards": [CARDS], key: value}
    whole["cases"] = [{"name": "one", "message": "hi", "agent": "a0", **case}]
    return Trap(acts, near, PLAIN, tests=whole, at=("test", key), command=("test", *options))


@makes("case.cards:read")
def _(spot: Spot) -> Trap:
    return _test("answer", "private.md", "cards", [spot.secret_of_config], live=True)


@makes("case.model:read")
def _(spot: Spot) -> Trap:
    model = f"playback?file={spot.secret_of_config}"
    return _test("read", "private.md", "model", model, live=True)


@makes("case.model:run")
def _(spot: Spot) -> Trap:
    model = f"local?path={spot.private}/m.gguf"
    return _test("answer", "m.gguf", "model", model, live=True)


@makes("case.recordings:read")
def _(spot: Spot) -> Trap:
    return _test("answer", f"{spot.private}", "recordings", f"{spot.private}")


@makes("case.recordings:write")
def _(spot: Spot) -> Trap:
    folder = f"taped{spot.number}"
    return _test("write", folder, "recordings", folder, "--record")


@makes("case.cases.recording:read")
def _(spot: Spot) -> Trap:
    return _test("answer", ".hidden.jsonl", "cases", None, recording=".hidden.jsonl")


@makes("case.cases.recording:write")
def _(spot: Spot) -> Trap:
    file = f"taped{spot.number}.jsonl"
    return _test("write", file, "cases", None, "--record", recording=file)


@makes("case.cases.data:read")
def _(spot: Spot) -> Trap:
    del spot
    return _test("answer", ".hidden.jsonl", "cases", None, data=".hidden.jsonl", live=True)


@makes("case.cases.network:ease")
def _(spot: Spot) -> Trap:
    del spot
    return _test("answer", "network: false → true", "cases", None, live=True, network=True)


@makes("guide.docroot:read")
def _(spot: Spot) -> Trap:
    return Trap(
        "read",
        f"{spot.private}",
        PLAIN,
        config={"guide": {"docroot": "docs"}},
        files={"docs/.guide.yaml": f"docroot: {json.dumps(str(spot.private))}\n"},
        at=("file", "docs/.guide.yaml"),
        command=("resources", "list"),
    )
