"""Secrets in text: what looks like one, by its name and by its value, and what hides those known.

A name is judged by its words, so that `GH_PAT` and `DB_PASS` are secrets and `MAX_TOKENS` and
`SSH_AUTH_SOCK` are not. A value is judged by its form: a URL with a password, a private key, a
token with the prefix of a known service.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from fast_agent.text.json_value import JsonValue

MARK: Final = "<<secret>>"
"""What stands instead of a secret."""

_MIN_LENGTH: Final = 8
_MIN_STUMP_LENGTH: Final = 6
_CUT: Final = "…"
_MIN_WORD_LENGTH: Final = 16
_MIN_UNGUESSABLE_LENGTH: Final = 12

_WORDS: Final = frozenset(
    {
        *("apikey", "apikeys", "key", "keys", "private", "salt", "sk"),
        *("auth", "authorization", "bearer", "cookie", "cookies", "creds", "jwt", "token"),
        *("otp", "pass", "passcode", "pat", "pin", "pw", "pwd"),
        *("dsn", "webhook"),
    }
)
_PARTS: Final = re.compile(r"passw|passphrase|secret|credential|connection_?string")
_ENDINGS: Final = re.compile(
    r".*(?:api|access|auth|private|secret|signing|encryption|master|service)key|.+token"
    r"|(?!by|com|tres|encom|ask|sur|under|over).+pass"
)
# `MAX_TOKENS` counts; these do not.
_PLURAL: Final = re.compile(r"(?:.*_)?(?:access|api|auth|bot|refresh|secret)_tokens")
_DATABASE: Final = re.compile(r"(?:.*_)?(?:database|db|broker|postgres(?:ql)?|mysql)_ur[il]")
_SAFE_NAMES: Final = frozenset(
    {"pwd", "oldpwd", "ssh_auth_sock", "public_key", "key_repeat", "keyboard_layout"}
)
_SEPARATORS: Final = re.compile(r"[^a-z0-9]+")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_SCHEME: Final = re.compile(r"(?:Bearer|Basic|Token|Digest)\s+", re.IGNORECASE)
_PATH_NAME: Final = re.compile(r".*(?:_FILE|_PATH|_DIR|CREDENTIALS|_SOCK)", re.IGNORECASE)
_SECRET_VALUE: Final = re.compile(
    r"""
    -----BEGIN[ ][A-Z0-9 ]*PRIVATE[ ]KEY
  | \bAGE-SECRET-KEY-1
  | [a-z][a-z0-9+.-]{0,20}://[^/\s:@]{0,256}:[^/\s@]+@    # a URL with a password
  | [a-z][a-z0-9+.-]{0,20}://[^/\s:@]{16,}@              # a URL with a token for a user
  | [?&;](?:[a-z]+[_-]){0,4}(?:key|token|secret|passw(?:or)?d|pwd|auth|sig|signature)=[^&;\s]{6,}
  | \b(?:password|passwd|pwd|accountkey|sharedaccesskey|sharedaccesssignature)\s*=\s*[^\s;]{4,}
  | \bhooks\.slack\.com/(?:services|workflows)/\w
  | \bdiscord(?:app)?\.com/api/webhooks/\d
  | ^(?:bearer|basic)\s+[\w.~+/=-]{8,}$
  | (?<![\w.-]) (?-i:
        eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*                  # a JWT
      | (?:sk|rk|whsec|gsk|xai|pplx|tvly|fw|nvapi|sk-ant|sk-proj|sk-or)[-_][\w-]{16,}
      | gh[oprsu]_\w{20,} | github_pat_\w{20,} | gl[a-z]{2,5}-[\w-]{16,}
      | xox[a-z]-[\w-]{10,} | xapp-[\w-]{10,}
      | (?:AKIA|ASIA)[A-Z0-9]{12,} | AIza[\w-]{30,} | ya29\.[\w-]{16,}
      | npm_\w{20,} | pypi-[\w-]{16,} | hf_\w{16,} | r8_\w{16,} | lsv2_\w{16,}
      | SG\.[\w-]{16,}\.[\w-]{8,} | do[opr]_v1_\w{16,} | shp(?:at|ca|pa|ss)_\w{16,}
      | glsa_\w{16,} | dckr_pat_[\w-]{16,} | atlasv1\.\w{16,} | hvs\.[\w-]{16,}
      | key-[0-9a-f]{32} | sq0[a-z]{3}-[\w-]{16,} | ATATT[\w=-]{16,}
    )
    """,
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)

_PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN[ ][A-Z0-9 ]*PRIVATE[ ]KEY-----(?:\s+[A-Za-z0-9+/=]{16,})*"
    r"(?:\s+[A-Za-z0-9+/=]+(?=\s+-----END))?(?:\s+-----END[ ][A-Z0-9 ]*PRIVATE[ ]KEY-----)?"
)
# What neither a shell nor an interpreter acts on, and what is not the start of a path.
_TOKEN: Final = re.compile(r"(?!~?/|\.{1,2}/)[\w.~+/=%@:,!#^*-]+")
_NAME: Final = re.compile(r"[\w-]*")
_MIXED: Final = re.compile(r"(?=.*[a-z])(?=.*[A-Z])(?=.*[0-9])[\w~+=-]{12,}|[0-9a-f]{32,}")
_ENDS: Final = frozenset("'\"&;,@)]}> \t\n/?#")
"""What may follow a token: not the parenthesis that calls a function of this name."""


def is_secret_name(name: str) -> bool:
    """Return whether what has this name is likely to be a secret.

    Args:
        name: The name of a variable, header or field, in any case: `GH_PAT`, `X-Api-Key`, `apiKey`.
    """
    words = _SEPARATORS.split(_CAMEL.sub("_", name).lower() if not name.isupper() else name.lower())
    joined = "_".join(filter(None, words))
    if joined in _SAFE_NAMES:
        return False
    if _PARTS.search(joined) or _PLURAL.fullmatch(joined) or _DATABASE.fullmatch(joined):
        return True
    return any(word in _WORDS or _ENDINGS.fullmatch(word) for word in words)


def is_secret_value(value: str) -> bool:
    """Return whether a value has the form of a secret, whatever its name."""
    return _SECRET_VALUE.search(value) is not None


def is_plain_token(value: str) -> bool:
    """Return whether a value may be a secret and nothing else.

    It is not a path, and has no character by which a shell or an interpreter would act on it.
    """
    return _TOKEN.fullmatch(value) is not None


def is_token_of_option(value: str) -> bool:
    """Return whether a word after an option such as `--token` is a secret, not a file or package.

    Names of packages and images have no capitals.
    """
    return _MIXED.fullmatch(value) is not None


def with_masked_secrets(text: str, mask: Callable[[str], str]) -> str:
    """Return a text with a mark instead of each secret in it, and all around them as it is.

    What is approved must be readable: of an address only the password is masked, of a command only
    the token. What a shell could act on is never taken for a secret, whatever stands before it.

    Args:
        text: The text.
        mask: Returns the mark for a secret.
    """
    shown: list[str] = []
    end = 0
    for start, stop in _secret_spans(text):
        if start >= end:
            shown += [text[end:start], mask(text[start:stop])]
            end = stop
    return "".join((*shown, text[end:]))


def _secret_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the secrets of a text are, from its start to its end."""
    for match in _SECRET_VALUE.finditer(text):
        if (key := _PRIVATE_KEY.match(text, match.start())) is not None:
            yield key.span()
            continue
        label = _before_secret(match[0])
        found = _TOKEN.match(text, match.start() + label)
        if found is None or (not label and _is_in_path(text, match)):
            continue
        # In an address the password ends at the `@`, which a token may contain.
        at = match[0].endswith("@")
        whole = _NAME.match(text, match.end())
        stop = match.end() - 1 if at else found.end() if label or whole is None else whole.end()
        if found.start() < stop <= found.end() and (stop == len(text) or text[stop] in _ENDS):
            yield found.start(), stop


def _is_in_path(text: str, match: re.Match[str]) -> bool:
    """Return whether what looks like a token is the name of a file or directory in a path."""
    before = re.split(r"[\s'\"=;|&()<>]", text[: match.start()])[-1]
    return "://" not in before and ("/" in before or text[match.end() : match.end() + 1] == "/")


def _before_secret(match: str) -> int:
    """Return how many characters of what looks like a secret only say what it is."""
    if match.endswith("@"):
        address = match.index("://") + 3
        return match.index(":", address) + 1 if ":" in match[address:] else address
    if match[:1] in {"?", "&", ";"} or re.match(r"[A-Za-z]+\s*=", match):
        return re.match(r"[^=]*=\s*", match).end()  # type: ignore[union-attr]
    if (scheme := _SCHEME.match(match)) is not None:
        return scheme.end()
    return max(match.rfind("/") + 1, 0)


def is_unguessable(value: str) -> bool:
    """Return whether a value is too long and mixed to be a word, a name or a human number.

    Such a value can be hidden wherever it stands, though nothing else says that it is a secret.
    """
    return (
        len(value) >= _MIN_UNGUESSABLE_LENGTH
        and not any(map(str.isspace, value))
        and not value.startswith(("/", "~", "./", "../"))
        and any(map(str.isdigit, value))
        and any(map(str.isalpha, value))
    )


def environment_secrets(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the values of variables that look like secrets.

    Args:
        environ: The environment.
    """
    for name, value in environ.items():
        named = is_secret_name(name) and not names_a_file(name, value)
        # A path is not a secret: `PWD` may be below a directory whose name looks like one.
        is_path = value.startswith("/") and "=" not in value
        if named or (is_secret_value(value) and not is_path):
            yield from secret_parts(value)


def secret_parts(value: str) -> Iterator[str]:
    """Yield a secret, without the word for its kind, and the password in it where it is a URL."""
    yield value
    yield _SCHEME.sub("", value, count=1)
    if "://" in value:
        yield from address_secrets(value)


def address_secrets(url: str | None) -> Iterator[str]:
    """Yield what is secret in an address: its user or password, and values of its query."""
    if url is None:
        return
    try:
        parts = urlsplit(url)
        user, password = parts.username, parts.password
    except ValueError:
        return
    for value in (password, user if password is None else None):
        if value:
            yield value
            yield unquote(value)
    for name, value in parse_qsl(parts.query):
        if is_secret_name(name) or is_unguessable(value):
            yield value


def names_a_file(name: str, value: str) -> bool:
    """Return whether a variable named as a secret holds the path of a file with one."""
    return value.startswith(("/", "~")) and _PATH_NAME.fullmatch(name) is not None


class Redactor:
    """Hides known secrets in text.

    A value of fewer than eight characters is not hidden, nor is a word of fewer than sixteen
    letters: they stand in too many texts that are about something else.

    Args:
        secrets: The values to hide.
    """

    __slots__ = ("_forms", "_json_forms")

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms = {form for secret in secrets for form in _forms(secret)}
        # The longest first: one may be a part of another.
        self._forms = tuple(sorted(forms, key=lambda form: (-len(form), form)))
        # JSON in ASCII escapes each character by itself: a text that has a form has this one there.
        self._json_forms = tuple({json.dumps(form)[1:-1] for form in (*forms, _CUT)})

    def redact(self, text: str) -> str:
        """Return text with a mark instead of each secret, also where JSON or a URL escapes it."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, MARK)
        return self._without_stumps(text) if _CUT in text else text

    def is_clean(self, json_text: str) -> bool:
        """Return whether no text of a value has anything to hide.

        Args:
            json_text: The value as JSON in ASCII.
        """
        return not any(form in json_text for form in self._json_forms)

    def _without_stumps(self, text: str) -> str:
        """Redact the rest of a secret where a text was cut in the middle of one."""
        before, *pieces = text.split(_CUT)
        for piece in pieces:
            stump = max((_overlap(before, form) for form in self._forms), default=0)
            before = f"{before[: len(before) - stump]}{MARK if stump else ''}{_CUT}{piece}"
        return before


def redacted(value: JsonValue, redact: Callable[[str], str]) -> JsonValue:
    """Return a copy of a value with every text in it redacted, keys too."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {redact(key): redacted(inner, redact) for key, inner in value.items()}
    if isinstance(value, Sequence):
        return [redacted(inner, redact) for inner in value]
    return value


def _overlap(text: str, form: str) -> int:
    """Return how many characters at the end of a text start a form, if they identify it."""
    for length in range(min(len(form) - 1, len(text)), _MIN_STUMP_LENGTH - 1, -1):
        if text.endswith(form[:length]):
            return length
    return 0


def _forms(secret: str) -> Iterator[str]:
    """Yield the ways a secret may be written; each line of several separately too."""
    whole = secret.strip()
    for text in {whole, *(line.strip() for line in whole.splitlines())}:
        if len(text) < _MIN_LENGTH or (text.isalpha() and len(text) < _MIN_WORD_LENGTH):
            continue
        yield text
        yield json.dumps(text)[1:-1]
        yield json.dumps(text, ensure_ascii=False)[1:-1]
        yield quote(text, safe="")
        yield quote(text)
        yield quote_plus(text)
        yield repr(text)[1:-1]
