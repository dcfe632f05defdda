"""Records what a Python process does that could matter, where a test asks for it."""

import json
import os
import sys

_LOG = os.environ.get("HOSTILE_LOG")
_ROOT = os.environ.get("HOSTILE_ROOT", "")
_AWAY = os.environ.get("HOSTILE_AWAY", "")


def _note(kind: str, what: object) -> None:
    with open(str(_LOG), "a", encoding="utf-8") as log:  # noqa: PTH123
        log.write(json.dumps([kind, str(what)]) + "\n")


def _hook(event: str, args: tuple[object, ...]) -> None:
    if event in {"subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.system"}:
        _note("start", args)
    elif event == "socket.connect":
        _note("connect", args[1])
    elif event == "socket.getaddrinfo":
        _note("connect", args[:2])
    elif event == "exec":
        name = getattr(args[0], "co_filename", "")
        if str(name).startswith(_ROOT):
            _note("import", name)
    elif event == "open" and str(args[0]) != _LOG:
        path, flags = os.path.normpath(str(args[0])), args[2]
        writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if writes and not path.startswith("/dev/"):
            _note("write", path)
        elif (_AWAY and path.startswith(_AWAY)) or ".hidden" in path:
            _note("read", path)
    elif (
        event in {"os.listdir", "os.scandir"}
        and _AWAY
        and os.path.normpath(str(args[0])).startswith(_AWAY)
    ):
        _note("read", args[0])


if _LOG:
    sys.addaudithook(_hook)
