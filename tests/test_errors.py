from __future__ import annotations

from traceback import format_exception

from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.errors import CardError, RunError


def test_a_traceback_ends_with_the_hint() -> None:
    error = RunError("there is no terminal", hint="run it at one; key-1")
    assert str(error) == "there is no terminal"
    shown = "".join(format_exception(error)).splitlines()
    assert shown[-2:] == [
        "fast_agent.errors.RunError: there is no terminal",
        "hint: run it at one; key-1",
    ]
    error.hide(lambda text: text.replace("key-1", "***"))
    assert "".join(format_exception(error)).splitlines()[-1] == "hint: run it at one; ***"


def test_a_report_says_each_hint_once() -> None:
    found = Diagnostic("FA101", "no field `x`", "a.md", None, hint="remove it")
    error = CardError("no field `x`", hint="remove it", diagnostics=[found])
    assert "".join(format_exception(error)).count("remove it") == 1
    assert "hint" not in "".join(format_exception(RunError("it ended")))
