"""Images: what answers and tool results show, drawn where the terminal can, named elsewhere.

Three protocols: that of kitty, that of iTerm2, and sixel. A PNG goes to the terminal in base64, and
everything else is drawn from its pixels, so that no byte of an image is obeyed. Formats other than
PNG, and sixel, need Pillow (the extra `images`).
"""

from __future__ import annotations

import base64
import binascii
import io
import re
import struct
import warnings
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from fast_agent.messages.message import ImageContent
from fast_agent.tui.drawing.rows import shown
from fast_agent.tui.drawing.theme import IN_BETWEEN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from PIL.Image import Image

    from fast_agent.config.settings import ImageDrawing
    from fast_agent.messages.message import Content
    from fast_agent.tui.drawing.theme import Theme

ImageProtocol: TypeAlias = Literal["kitty", "iterm", "sixel"]

REQUIREMENT: Final = "fast-agent[images]"
"""What unpacks formats other than PNG."""
_MAX_BYTES: Final = 20 * 1024 * 1024
_MAX_SENT: Final = 2 * 1024 * 1024
"""Most bytes of a PNG that is sent as it is; a larger one is scaled down first."""
_MAX_PIXELS: Final = 50_000_000
"""Most pixels that are unpacked: a small file may claim to hold gigabytes of them."""
_ROUNDING: Final = 1e-6
_ORIENTATION: Final = 0x0112
"""The field of EXIF that says how a picture is set upright."""
_LYING: Final = range(5, 9)
_BROKEN: Final = (OSError, ValueError, SyntaxError, EOFError, MemoryError, struct.error)
"""What Pillow raises for files that are broken."""
_KITTY_PIECE: Final = 4096
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_PNG_HEAD: Final = struct.Struct(">8s4s4sII")

_BY_PROGRAM: Final[Mapping[str, ImageProtocol]] = {
    "iTerm.app": "iterm",
    "WezTerm": "iterm",
    "rio": "iterm",
    "mintty": "iterm",
    "ghostty": "kitty",
}
_BY_TERM: Final[Mapping[str, ImageProtocol]] = {
    "xterm-kitty": "kitty",
    "xterm-ghostty": "kitty",
    "foot": "sixel",
    "foot-extra": "sixel",
    "mlterm": "sixel",
    "contour": "sixel",
}
_KONSOLE: Final = 220400
"""The first version of Konsole with the protocol of kitty."""


class PixelSize(NamedTuple):
    """Width and height in pixels."""

    width: int
    height: int


class ImageRoom(NamedTuple):
    """The room of an image.

    Args:
        columns: Most columns.
        rows: Most rows.
        cell: Width and height of a cell in pixels.
    """

    columns: int
    rows: int
    cell: PixelSize


def image_source(environ: Mapping[str, str]) -> tuple[ImageProtocol, str] | None:
    """Return the protocol of a terminal known to draw images, and the variable that names it.

    The terminals are those whose documentation says so. Programs between them and this one, such as
    tmux, do not pass images on.
    """
    if any(environ.get(name) for name in IN_BETWEEN):
        return None
    for name, known in (("TERM_PROGRAM", _BY_PROGRAM), ("TERM", _BY_TERM)):
        protocol = known.get(environ.get(name, ""))
        if protocol is not None:
            return protocol, name
    version = environ.get("KONSOLE_VERSION", "")
    if version.isdecimal() and int(version) >= _KONSOLE:
        return "kitty", "KONSOLE_VERSION"
    return None


@dataclass(frozen=True, slots=True)
class Images:
    """Draws the images of answers and tool results.

    Args:
        theme: The styles.
        drawing: Gives the setting `tui.images`.
        room: Gives the room of an image.
        environ: The environment of the terminal.
    """

    theme: Theme
    drawing: Callable[[], ImageDrawing]
    room: Callable[[], ImageRoom]
    environ: Mapping[str, str]

    @property
    def protocol(self) -> ImageProtocol | None:
        """How images are drawn now; None where they are only named."""
        drawing = self.drawing()
        if drawing == "off" or self.theme.is_spoken:
            return None
        if drawing != "auto":
            return drawing
        source = image_source(self.environ)
        return None if source is None else source[0]

    def rows(self, content: Iterable[Content]) -> list[str]:
        """Return the rows of the images among content: a line for each, and the image below it.

        The last row of an image holds all of its control sequences. They make room first, so that
        nothing scrolls while it is drawn, and leave the cursor where it was.
        """
        found: list[str] = []
        for block in content:
            if isinstance(block, ImageContent):
                found += self._rows(block)
        return found

    def _rows(self, content: ImageContent) -> list[str]:
        try:
            data = base64.b64decode(content.data, validate=True)
        except (binascii.Error, ValueError):
            return [self._named(content, "not base64")]
        if len(data) > _MAX_BYTES:
            return [self._named(content, _amount(data))]
        size = png_size(data)
        image = None
        if size is None:
            image = opened(data)
            size = None if image is None else _shown_size(image)
        facts = [f"{size.width} x {size.height}"] if size is not None else []
        row = self._named(content, *facts, _amount(data))
        protocol = self.protocol
        if protocol is None or size is None or size.width * size.height > _MAX_PIXELS:
            return [row]
        drawn = _drawn(protocol, data, image, size, self.room())
        return [row] if drawn is None else [row, drawn]

    def _named(self, content: ImageContent, *facts: str) -> str:
        dot = f" {self.theme.sign('dot')} "
        kind = shown(content.mime_type[:40]) or "image"
        return self.theme.dim(f"[image] {dot.join((kind, *facts))}")


def png_size(data: bytes) -> PixelSize | None:
    """Return the size of a PNG by its head; None where it is not PNG or has no pixels."""
    if len(data) < _PNG_HEAD.size:
        return None
    mark, _, kind, width, height = _PNG_HEAD.unpack_from(data)
    if mark != _PNG or kind != b"IHDR" or not width or not height:
        return None
    return PixelSize(width, height)


def opened(data: bytes) -> Image | None:
    """Open an image with Pillow, its pixels still packed; None without Pillow, or if it cannot."""
    try:
        from PIL import Image as pillow  # noqa: N813
    except ImportError:
        return None
    try:
        with warnings.catch_warnings():
            # What is too large is refused below by its size, and not with a warning of a library.
            warnings.simplefilter("ignore", pillow.DecompressionBombWarning)
            image = pillow.open(io.BytesIO(data))
    except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError):
        return None
    return image if all(image.size) else None


def has_pillow() -> bool:
    """Whether Pillow is installed."""
    from importlib.util import find_spec

    return find_spec("PIL") is not None


def _drawn(
    protocol: ImageProtocol, data: bytes, image: Image | None, size: PixelSize, room: ImageRoom
) -> str | None:
    """Return the row that draws an image; None where it cannot be drawn."""
    columns, rows = _cells(size, room)
    wanted = PixelSize(columns * room.cell.width, rows * room.cell.height)
    if protocol == "sixel" or image is not None or len(data) > _MAX_SENT:
        image = image or opened(data)
        pixels = None if image is None else _scaled(image, wanted)
        if pixels is None:
            return None
        if protocol == "sixel":
            # Some terminals move to the row below the last one, which scrolls at the end.
            return _placed(rows + 1, _sixel(pixels))
        data = _as_png(pixels)
    if protocol == "kitty":
        # Given both, kitty would not keep the proportions; it computes the other from one.
        is_wide = wanted.width * size.height <= wanted.height * size.width
        return _placed(rows, _kitty(data, f"c={columns}" if is_wide else f"r={rows}"))
    return _placed(rows, _iterm(data, columns, rows))


def _cells(size: PixelSize, room: ImageRoom) -> tuple[int, int]:
    """Return columns and rows of an image: its own size, or as much of it as there is room for."""
    width, height = size.width / room.cell.width, size.height / room.cell.height
    scale = min(1.0, max(1, room.columns) / width, max(1, room.rows) / height)
    return max(1, ceil(width * scale - _ROUNDING)), max(1, ceil(height * scale - _ROUNDING))


def _shown_size(image: Image) -> PixelSize:
    """Return the size of an image as it is shown: cameras store pictures lying on their side."""
    width, height = image.size
    return PixelSize(height, width) if _is_rotated(image) else PixelSize(width, height)


def _is_rotated(image: Image) -> bool:
    try:
        return image.getexif().get(_ORIENTATION, 1) in _LYING
    except _BROKEN:
        return False


def _scaled(image: Image, size: PixelSize) -> Image | None:
    """Unpack an image and set it upright, no larger than a size; None where its file is broken."""
    from PIL.ImageOps import exif_transpose

    stored = (size.height, size.width) if _is_rotated(image) else size
    try:
        image.draft("RGB", stored)
        pixels = image.convert("RGBA")
        pixels.thumbnail(stored)
        return exif_transpose(pixels)
    except _BROKEN:
        return None


def _as_png(image: Image) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def _placed(rows: int, sequence: str) -> str:
    """Draw in rows that are there before it begins; the cursor ends in the last of them."""
    if rows == 1:
        return f"\x1b7{sequence}\x1b8"
    room = "\r\n" * (rows - 1)
    return f"{room}\x1b[{rows - 1}A\x1b7{sequence}\x1b8\x1b[{rows - 1}B"


def _kitty(png: bytes, cells: str) -> str:
    text = base64.b64encode(png).decode("ascii")
    pieces = [text[start : start + _KITTY_PIECE] for start in range(0, len(text), _KITTY_PIECE)]
    head = f"a=T,f=100,q=2,C=1,{cells},"
    out: list[str] = []
    for number, piece in enumerate(pieces):
        more = int(number + 1 < len(pieces))
        out.append(f"\x1b_G{'' if number else head}m={more};{piece}\x1b\\")
    return "".join(out)


def _iterm(png: bytes, columns: int, rows: int) -> str:
    text = base64.b64encode(png).decode("ascii")
    facts = f"inline=1;size={len(png)};width={columns};height={rows};preserveAspectRatio=1"
    return f"\x1b]1337;File={facts}:{text}\x07"


_SIXEL_COLORS: Final = 255
_NO_COLOR: Final = 255
"""The color index of pixels that are not drawn."""
_UNSEEN: Final = bytes(255 if alpha < 128 else 0 for alpha in range(256))
_BAND: Final = 6
_RUN: Final = re.compile(r"(.)\1{3,}")


def _sixel(image: Image) -> str:
    """Encode an image as sixels: bands of six rows, each drawn once a colour."""
    from PIL import Image as pillow  # noqa: N813

    flat = image.convert("RGB").quantize(_SIXEL_COLORS)
    palette = flat.getpalette() or []
    alpha = image.getchannel("A").tobytes()
    unseen = pillow.frombytes("L", image.size, alpha.translate(_UNSEEN))
    flat.paste(_NO_COLOR, mask=unseen)
    width, height = flat.size
    pixels = flat.tobytes()
    out = [f'\x1bP0;1;0q"1;1;{width};{height}']
    for color in range(len(palette) // 3):
        shares = (round(part * 100 / 255) for part in palette[3 * color : 3 * color + 3])
        out.append(f"#{color};2;" + ";".join(map(str, shares)))
    for top in range(0, height, _BAND):
        rows = [
            pixels[row * width : (row + 1) * width] for row in range(top, min(top + _BAND, height))
        ]
        drawn: list[str] = []
        for color in sorted(set(b"".join(rows)) - {_NO_COLOR}):
            bits = 0
            for number, row in enumerate(rows):
                mark = bytes(256)
                mark = mark[:color] + bytes([1 << number]) + mark[color + 1 :]
                bits |= int.from_bytes(row.translate(mark), "big")
            text = bits.to_bytes(width, "big").translate(_SIXEL_LETTERS).decode("ascii")
            drawn.append(f"#{color}" + _RUN.sub(_run, text.rstrip("?")))
        out.append("$".join(drawn) + "-")
    out.append("\x1b\\")
    return "".join(out)


_SIXEL_LETTERS: Final = bytes((63 + value) & 0x7F for value in range(256))


def _run(found: re.Match[str]) -> str:
    return f"!{len(found[0])}{found[1]}"


def _amount(data: bytes) -> str:
    return f"{len(data) / 1024:,.1f} KiB"
