"""Asking a user at the controlling terminal, for runs that are not interactive otherwise."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from anyio import Lock, wait_readable, wait_writable

from fast_agent.errors import ToolError
from fast_agent.text.visible import visible
from fast_agent.tools.human import HumanAnswer, asker, form_fields

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonValue
    from fast_agent.tools.human import FormField, HumanRequest, Origins

CONTROLLING_TERMINAL = "/dev/tty"

_MAX_LINES = 60
_LINE_LENGTH = 400
# A terminal that takes no more, because it was stopped, must not stop the whole program.
_FLAGS = os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK
_HELP = "(/decline to refuse, /cancel to dismiss)"


class TerminalHuman:
    """A user at a terminal. Questions wait for each other.

    What is asked is shown line by line behind a mark, with invisible and control characters made
    visible, so that it cannot pass for something the program says.

    Args:
        path: The terminal.
        origins: Knows where agents and servers come from; None names them without.
    """

    def __init__(self, path: str = CONTROLLING_TERMINAL, *, origins: Origins | None = None) -> None:
        self._path = path
        self._origins = origins
        self._lock = Lock()

    @classmethod
    def find(cls, origins: Origins | None = None) -> TerminalHuman | None:
        """Return the user at the controlling terminal; None where there is no terminal."""
        try:
            os.close(os.open(CONTROLLING_TERMINAL, _FLAGS))
        except OSError:
            return None
        return cls(origins=origins)

    async def ask(self, request: HumanRequest) -> HumanAnswer:
        """Ask and wait for the answer.

        Args:
            request: The question.

        Returns:
            The answer; `cancel` where the terminal was closed.
        """
        async with self._lock:
            try:
                descriptor = os.open(self._path, _FLAGS)
            except OSError:
                return HumanAnswer(action="cancel")
            try:
                return await _TerminalQuestion(descriptor, self._origins).ask(request)
            except OSError:
                return HumanAnswer(action="cancel")
            finally:
                os.close(descriptor)


class _RefusedError(Exception):
    def __init__(self, answer: HumanAnswer) -> None:
        super().__init__(answer.action)
        self.answer = answer


class _TerminalQuestion:
    """One question at an open terminal."""

    def __init__(self, descriptor: int, origins: Origins | None) -> None:
        self._descriptor = descriptor
        self._origins = origins

    async def ask(self, request: HumanRequest) -> HumanAnswer:
        await self._show(request)
        try:
            if request.url is not None:
                return await self._ask_to_open(request.url)
            if request.schema is None:
                return HumanAnswer(action="accept", content={"text": await self._line("answer")})
            content: dict[str, JsonValue] = {}
            for field in form_fields(request.schema):
                await self._fill(field, content)
        except _RefusedError as refused:
            return refused.answer
        except ToolError as problem:
            await self._write(f"  {visible(problem.message)}\n")
            return HumanAnswer(action="cancel")
        return HumanAnswer(action="accept", content=content)

    async def _show(self, request: HumanRequest) -> None:
        await self._write(f"\n{asker(request, self._origins)} {_HELP}:\n")
        lines = request.message.splitlines()
        for line in lines[:_MAX_LINES]:
            await self._write(f"  | {visible(line[:_LINE_LENGTH])}\n")
        if len(lines) > _MAX_LINES:
            await self._write(f"  ({len(lines) - _MAX_LINES} more lines)\n")

    async def _ask_to_open(self, url: str) -> HumanAnswer:
        await self._write(f"  open this address yourself, if you trust it:\n  {visible(url)}\n")
        word = await self._line("opened? yes or no")
        return HumanAnswer(action="accept" if word.lower() in ("y", "yes") else "decline")

    async def _fill(self, field: FormField, content: dict[str, JsonValue]) -> None:
        if field.description:
            await self._write(f"  | {visible(field.description[:_LINE_LENGTH])}\n")
        for number, (_, label) in enumerate(field.choices, 1):
            await self._write(f"  {number}. {visible(label[:_LINE_LENGTH])}\n")
        while True:
            text = await self._line(_prompt(field))
            try:
                if text:
                    content[field.name] = field.parse(text)
                elif field.default is not None:
                    content[field.name] = field.default
                elif field.required:
                    raise ToolError("an answer is needed")
            except ToolError as problem:
                await self._write(f"  {visible(problem.message)}\n")
            else:
                return

    async def _line(self, prompt: str) -> str:
        """Read a line; the two words and a closed terminal end the question."""
        await self._write(f"{prompt}: ")
        data = b""
        while not data.endswith(b"\n"):
            await wait_readable(self._descriptor)
            try:
                piece = os.read(self._descriptor, 4096)
            except BlockingIOError:
                continue
            if not piece:
                await self._write("\n")
                raise _RefusedError(HumanAnswer(action="cancel"))
            data += piece
        text = data.decode("utf-8", "replace").strip()
        if text == "/decline":
            raise _RefusedError(HumanAnswer(action="decline"))
        if text == "/cancel":
            raise _RefusedError(HumanAnswer(action="cancel"))
        return text

    async def _write(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        while data:
            await wait_writable(self._descriptor)
            with suppress(BlockingIOError):
                data = data[os.write(self._descriptor, data) :]


def _prompt(field: FormField) -> str:
    kinds = {"integer": "whole number", "boolean": "yes or no", "array": "numbers with commas"}
    kind = "number of a choice" if field.choices and field.kind != "array" else field.kind
    facts = [kinds.get(kind, kind)]
    if field.default is not None:
        facts.append(f"empty for {visible(str(field.default))}")
    elif not field.required:
        facts.append("may be empty")
    return f"{visible(field.label)} ({', '.join(facts)})"
