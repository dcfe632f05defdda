from __future__ import annotations

import ssl
from traceback import format_exception

from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.errors import CardError, RunError, os_reason


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


def test_reasons_of_tls_are_words() -> None:
    unread = ssl.SSLError(1, "[X509] no certificate or crl found (_ssl.c:4154)")
    unread.reason = "NO_CERTIFICATE_OR_CRL_FOUND"
    assert os_reason(unread) == "no certificate or crl found"
    untrusted = ssl.SSLCertVerificationError(1, "certificate verify failed (_ssl.c:1006)")
    untrusted.verify_message = "certificate has expired"
    assert os_reason(untrusted) == "its certificate is not trusted: certificate has expired"
