"""Talk over lines: one message a line, over the standard input and output of a process."""

from __future__ import annotations

import json
import time
from queue import Empty, Queue
from threading import Thread
from typing import TYPE_CHECKING, Any

from tests.golden.messages import AGAIN_SECONDS, fits, hello, message_of, without_overtaken
from tests.golden.stage import verb_of
from tests.golden.values import found_at
from tests.golden.world import change_file
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from tests.golden.stage import Stage, Step
    from tests.golden.values import Values
    from tests.golden.world import ServerProcess

_END = object()


class LineTalk:
    """A client of a process that reads and writes lines.

    Args:
        stage: What is played.
        server: The process.
    """

    def __init__(self, stage: Stage, server: ServerProcess) -> None:
        self._stage = stage
        self._server = server
        self._came: Queue[Any] = Queue()
        self._asked: dict[str, Any] | None = None
        self._number = 0
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def begin(self) -> None:
        """Begin an exchange: ids of requests count from 1."""
        self._number = 0

    def play(self, step: Step, values: Values) -> list[Any]:
        """Do a step; returns the messages that came until what it waits for."""
        verb = verb_of(step)
        argument = values.filled(step[verb])
        came: list[Any] = []
        match verb:
            case "ask" | "begin" | "tell":
                came = self._send_message(values.filled(step))
            case "hello":
                came = self._hello(argument, values.filled(step.get("can", self._stage.can)))
            case "raw":
                self._write_raw(argument, step)
            case "await":
                came = self._until(argument)
            case "answer" | "refuse":
                self._answer("result" if verb == "answer" else "error", argument)
            case "hangup":
                self._hang_up()
            case "signal":
                self._server.signal(argument)
            case "exit":
                came = self._rest()
            case _:
                change_file(self._server.world, verb, argument)
        values.keep(step.get("keep", {}), came[-1] if came else None)
        for wanted in step.get("then", ()):
            came += self._until(values.filled(wanted))
        return without_overtaken(came)

    def close(self) -> None:
        """Hang up, and wait until the process ends."""
        self._hang_up()
        self._server.end()
        self._reader.join()

    def _send_message(self, step: Step) -> list[Any]:
        """Send a message; with `until`, again until the answer has a part."""
        verb = verb_of(step)
        self._number += verb != "tell"
        message = message_of(step, self._stage, self._number)
        end = time.monotonic() + PATIENCE
        while True:
            self._write(json.dumps(message))
            came = self._until(message["id"]) if verb == "ask" else []
            if "until" not in step or found_at(came[-1], step["until"]) is not None:
                return came
            assert time.monotonic() < end, f"{message} was only answered {came}"
            time.sleep(AGAIN_SECONDS)

    def _hello(self, version: str, can: Any) -> list[Any]:
        self._number += 1
        asked = {"jsonrpc": "2.0", "id": self._number, "method": "initialize"}
        self._write(json.dumps({**asked, "params": hello(version, can)}))
        came = self._until(self._number)
        self._write('{"jsonrpc":"2.0","method":"notifications/initialized"}')
        return came

    def _answer(self, key: str, value: Any) -> None:
        assert self._asked is not None, "the server asked for nothing"
        self._write(json.dumps({"jsonrpc": "2.0", "id": self._asked["id"], key: value}))

    def _until(self, wanted: Any) -> list[Any]:
        """Take what comes, up to a message; `{count: n}` takes n of them."""
        came: list[Any] = []
        while True:
            message = self._next(came, wanted)
            if message is _END:
                raise AssertionError(
                    f"the server ended before {wanted!r}, after {came}: {self._server.log}"
                )
            came.append(message)
            if isinstance(message, dict) and "method" in message and "id" in message:
                self._asked = message
            if fits(message, wanted) or wanted == {"count": len(came)}:
                return came

    def _next(self, came: list[Any], wanted: Any) -> Any:
        try:
            return self._came.get(timeout=PATIENCE)
        except Empty:
            raise AssertionError(
                f"{wanted!r} never came, only {came}: {self._server.log}"
            ) from None

    def _rest(self) -> list[Any]:
        came: list[Any] = []
        while (message := self._next(came, "the end")) is not _END:
            came.append(message)
        return [*came, {"exit": self._server.exit_status()}]

    def _write_raw(self, argument: Any, step: Step) -> None:
        """Write a text or a value as it is; `coding` names another one than UTF-8."""
        text = argument if isinstance(argument, str) else json.dumps(argument)
        self._write_bytes(text.encode(step.get("coding", "utf-8"), "surrogatepass"))
        if not step.get("unended"):
            self._write_bytes(b"\n")

    def _write(self, line: str) -> None:
        self._write_bytes(line.encode() + b"\n")

    def _write_bytes(self, data: bytes) -> None:
        pipe = self._server.process.stdin
        assert pipe is not None
        pipe.write(data)
        pipe.flush()

    def _hang_up(self) -> None:
        pipe = self._server.process.stdin
        assert pipe is not None
        if not pipe.closed:
            pipe.close()

    def _read(self) -> None:
        pipe = self._server.process.stdout
        assert pipe is not None
        for line in pipe:
            try:
                self._came.put(json.loads(line))
            except ValueError:
                self._came.put({"line": line.decode("utf-8", "replace")})
        self._came.put(_END)
