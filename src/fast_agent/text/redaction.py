"""Secrets in text: what looks like one, by its name and by its value.

A name is judged by its words, so that `GH_PAT` and `DB_PASS` are secrets and `MAX_TOKENS` and
`SSH_AUTH_SOCK` are not. A value is judged by its form: a URL with a password, a private key, a
token with the prefix of a known service.
"""

from __future__ import annotations

import re
from typing import Final

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
