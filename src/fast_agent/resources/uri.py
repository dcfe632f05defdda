"""Resource URIs: a strict parser of our own, and one canonical spelling.

The standard library's parser drops tabs and line ends, folds letter case and accepts nearly
anything. A URI here names an entry of a catalog, so what cannot be a name is refused outright.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from fast_agent.resources.problem import InvalidUri

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_CHARACTERS = 2048

_SCHEME = r"[A-Za-z][A-Za-z0-9+.\-]*"
# Characters that need no encoding, between a lower-case scheme and the end.
_CANONICAL = re.compile(r"[a-z][a-z0-9+.\-]*://[A-Za-z0-9!$&'()*+,;=:@~\-._/]+")
_NO_NAMES = frozenset({"", ".", ".."})
_BAD_ESCAPE = r"%(?![0-9A-Fa-f]{2})"
_ESCAPE = rb"%([0-9A-Fa-f]{2})"
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_LITERAL = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!$&'()*+,;=:@~-._"
_ENCODED = tuple(chr(code) if code in _LITERAL else f"%{code:02X}" for code in range(256))


class Uri(NamedTuple):
    """The name of a resource: a scheme and one or more decoded segments.

    Made by `parse` from text and by `of` from segments; two URIs are equal when their canonical
    text is.

    Args:
        text: The canonical spelling, which is also `str(uri)`.
        scheme: Lower case, without `://`.
        segments: Decoded, in Unicode's composed form (NFC); the first is not a host name.
    """

    text: str
    scheme: str
    segments: tuple[str, ...]

    def __str__(self) -> str:
        return self.text

    @property
    def path(self) -> str:
        """The decoded segments with `/` between them."""
        return "/".join(self.segments)

    def child(self, *names: str) -> Uri:
        """Name something below this URI.

        Args:
            names: Decoded segments.

        Raises:
            InvalidUri: A name cannot be a segment, or the whole grows too long.
        """
        return Uri.of(self.scheme, (*self.segments, *names))

    @classmethod
    def of(cls, scheme: str, segments: Iterable[str]) -> Uri:
        """Make a URI of names, such as those of files.

        Args:
            scheme: Such as `skill`.
            segments: Decoded; brought into composed form (NFC) here.

        Raises:
            InvalidUri: There is no segment, one cannot be one, or the whole is too long.
        """
        names = tuple(segments)
        text = f"{scheme}://{'/'.join(names)}"
        if (
            len(text) <= MAX_CHARACTERS
            and _CANONICAL.fullmatch(text)
            and not _NO_NAMES & {*names}
            # No segment holds a `/`, and none of the scheme's characters came out of one.
            and tuple(text[len(scheme) + 3 :].split("/")) == names
        ):
            return cls(text, scheme, names)
        names = tuple(_checked(segment, scheme) for segment in names)
        text = f"{scheme}://{'/'.join(map(_encode, names))}"
        if not names:
            raise InvalidUri(text, "names nothing after `://`")
        if len(text) > MAX_CHARACTERS:
            raise InvalidUri(text, f"is longer than {MAX_CHARACTERS} characters when encoded")
        return cls(text, scheme, names)

    @classmethod
    def parse(cls, text: str) -> Uri:
        """Read a URI, in any spelling that decodes to the same name.

        Args:
            text: Such as `skill://code-review/SKILL.md`.

        Returns:
            The URI; `Uri.parse(str(uri)) == uri`.

        Raises:
            InvalidUri: Too long, no `scheme://`, a fragment or query, an empty or dot segment, a
                broken escape, or an encoded separator, control character or broken UTF-8.
        """
        if len(text) > MAX_CHARACTERS:
            raise InvalidUri(text, f"is longer than {MAX_CHARACTERS} characters")
        if _CANONICAL.fullmatch(text):
            scheme, _, rest = text.partition("://")
            segments = tuple(rest.split("/"))
            if not _NO_NAMES & {*segments}:
                return cls(text, scheme, segments)
        scheme, mark, rest = text.partition("://")
        if not mark or not re.fullmatch(_SCHEME, scheme):
            raise InvalidUri(text, "does not start with a scheme and `://`")
        if "#" in rest:
            raise InvalidUri(text, "has a fragment; write `%23` for the character `#`")
        if "?" in rest:
            raise InvalidUri(text, "has a query; write `%3F` for the character `?`")
        if not rest:
            raise InvalidUri(text, "names nothing after `://`")
        try:
            return cls.of(scheme.lower(), [_decode(part) for part in rest.split("/")])
        except InvalidUri as problem:
            raise InvalidUri(text, problem.reason) from None
        except _BadSegmentError as error:
            raise InvalidUri(text, str(error)) from None


class _BadSegmentError(ValueError):
    """A segment cannot be decoded; the message follows the URI."""


def _decode(segment: str) -> str:
    """Decode percent escapes once."""
    if "%" not in segment:
        return segment
    if re.search(_BAD_ESCAPE, segment):
        raise _BadSegmentError("has a `%` that two hexadecimal digits do not follow")
    try:
        raw = segment.encode()
        return re.sub(_ESCAPE, lambda match: bytes((int(match[1], 16),)), raw).decode()
    except UnicodeError:
        raise _BadSegmentError("is not UTF-8 when decoded") from None


def _checked(segment: str, scheme: str) -> str:
    """Convert a decoded segment to composed form, or refuse it."""
    if not segment.isascii():
        from unicodedata import normalize

        segment = normalize("NFC", segment)
    if not segment:
        reason = "has an empty segment (`//` or a `/` at the end)"
    elif segment in {".", ".."}:
        reason = f"has the segment `{segment}`"
    elif "/" in segment or "\\" in segment:
        reason = "has a segment that holds a `/` or `\\`"
    elif _CONTROL.search(segment):
        reason = "holds a control character"
    else:
        return segment
    raise InvalidUri(f"{scheme}://{segment}", reason)


def _encode(segment: str) -> str:
    return "".join(map(_ENCODED.__getitem__, segment.encode()))
