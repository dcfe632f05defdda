"""Images of answers and tool results: drawn by three protocols, named where nothing draws them."""

from __future__ import annotations

import base64
import io
import random
import re
import sys
import zlib
from typing import TYPE_CHECKING

import pytest
from PIL import Image
from tests.tui.terminal_world import Terminal
from tests.tui.test_terminal import READY

from fast_agent.messages.message import ImageContent, TextContent
from fast_agent.tui.drawing.images import ImageRoom, Images, PixelSize, image_source
from fast_agent.tui.drawing.theme import Theme

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.config.settings import ImageDrawing

CELL = PixelSize(8, 16)
PLACED = re.compile(r"(?:\r\n)*(?:\x1b\[(\d+)A)?\x1b7(\x1b.*)\x1b8(?:\x1b\[(\d+)B)?", re.DOTALL)


def drawn(
    data: bytes | str,
    drawing: ImageDrawing = "kitty",
    room: tuple[int, int] = (80, 12),
    mime_type: str = "image/png",
) -> list[str]:
    images = Images(
        Theme(styled=False), lambda: drawing, lambda: ImageRoom(*room, CELL), {"TERM": "xterm"}
    )
    text = data if isinstance(data, str) else base64.b64encode(data).decode()
    return images.rows([TextContent("see"), ImageContent(text, mime_type)])


def saved(image: Image.Image, kind: str = "PNG") -> bytes:
    out = io.BytesIO()
    image.save(out, kind)
    return out.getvalue()


def colored(width: int, height: int) -> Image.Image:
    rng = random.Random(f"{width} {height}")
    colors = [rng.randbytes(3) for _ in range(5)]
    pixels = b"".join(rng.choice(colors) for _ in range(width * height))
    return Image.frombytes("RGB", (width, height), pixels)


@pytest.mark.parametrize(
    ("environ", "source"),
    [
        ({}, None),
        ({"TERM": "xterm-256color"}, None),
        ({"TERM": "xterm-kitty"}, ("kitty", "TERM")),
        ({"TERM": "xterm-kitty", "TMUX": "1"}, None),
        ({"TERM": "foot"}, ("sixel", "TERM")),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, ("iterm", "TERM_PROGRAM")),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm", "STY": "1"}, None),
        ({"KONSOLE_VERSION": "220400"}, ("kitty", "KONSOLE_VERSION")),
        ({"KONSOLE_VERSION": "220399"}, None),
        ({"KONSOLE_VERSION": "new"}, None),
    ],
)
def test_which_terminals_draw(environ: dict[str, str], source: object) -> None:
    assert image_source(environ) == source


@pytest.mark.parametrize(
    ("size", "room", "cells"),
    [
        ((8, 16), (80, 12), (1, 1)),
        ((1, 1), (80, 12), (1, 1)),
        ((640, 160), (80, 12), (80, 10)),
        ((1280, 160), (80, 12), (80, 5)),
        ((640, 1600), (80, 12), (10, 12)),
        ((64, 64), (1, 1), (1, 1)),
    ],
)
def test_a_png_is_sent_as_it_is_in_the_cells_there_are(
    size: tuple[int, int], room: tuple[int, int], cells: tuple[int, int]
) -> None:
    data = saved(colored(*size))
    named, row = drawn(data, room=room)
    assert named.startswith(f"[image] image/png · {size[0]} x {size[1]} · ")
    placed = PLACED.fullmatch(row)
    assert placed is not None
    assert row.count("\n") == cells[1] - 1 == int(placed[1] or 0) == int(placed[3] or 0)
    pieces = re.findall(r"\x1b_G([^;]*);([^\x1b]*)\x1b\\", placed[2])
    assert "".join(f"\x1b_G{head};{text}\x1b\\" for head, text in pieces) == placed[2]
    head, _, key = pieces[0][0].removesuffix(",m=0").removesuffix(",m=1").rpartition(",")
    assert head == "a=T,f=100,q=2,C=1"
    assert key in {f"c={cells[0]}", f"r={cells[1]}"}
    scale = cells[0] * 8 / size[0] if key[0] == "c" else cells[1] * 16 / size[1]
    assert size[0] * scale <= cells[0] * 8
    assert size[1] * scale <= cells[1] * 16
    assert [head[-3:] for head, _ in pieces] == ["m=1"] * (len(pieces) - 1) + ["m=0"]
    assert all(len(text) <= 4096 for _, text in pieces)
    assert base64.b64decode("".join(text for _, text in pieces)) == data
    _, row = drawn(data, "iterm", room)
    head, _, text = row.removesuffix("\x07").partition(":")
    assert f"width={cells[0]};height={cells[1]};" in head
    assert base64.b64decode(text.partition("\x07")[0]) == data


@pytest.mark.parametrize("kind", ["JPEG", "GIF", "WEBP", "BMP"])
def test_other_formats_become_a_png_of_the_size_shown(kind: str) -> None:
    data = saved(colored(1600, 400), kind)
    mime_type = f"image/{kind.lower()}"
    named, row = drawn(data, "iterm", (40, 12), mime_type)
    assert named.startswith(f"[image] {mime_type} · 1600 x 400 · ")
    png = base64.b64decode(row.partition(":")[2].partition("\x07")[0])
    with Image.open(io.BytesIO(png)) as image:
        assert (image.format, image.size) == ("PNG", (320, 80))


@pytest.mark.parametrize(
    ("orientation", "size", "corner"),
    [(1, (320, 80), "red"), (3, (320, 80), "blue"), (6, (48, 192), "red"), (8, (48, 192), "blue")],
)
def test_a_photograph_stands_upright(orientation: int, size: tuple[int, int], corner: str) -> None:
    photograph = Image.new("RGB", (1600, 400), "blue")
    photograph.paste("red", (0, 0, 800, 400))
    exif = Image.Exif()
    exif[0x0112] = orientation
    out = io.BytesIO()
    photograph.save(out, "JPEG", exif=exif, quality=95)
    named, row = drawn(out.getvalue(), "iterm", (40, 12), "image/jpeg")
    shown = "1600 x 400" if size[0] > size[1] else "400 x 1600"
    assert f" · {shown} · " in named
    png = base64.b64decode(row.partition(":")[2].partition("\x07")[0])
    with Image.open(io.BytesIO(png)) as image:
        assert image.size == size
        red, blue = (image.getchannel(one).crop((2, 2, 3, 3)).tobytes()[0] for one in "RB")
        assert (red > blue) == (corner == "red")


def test_a_large_png_is_scaled_down_before_it_is_sent() -> None:
    noise = random.Random(1).randbytes(1200 * 900 * 3)
    data = saved(Image.frombytes("RGB", (1200, 900), noise))
    assert len(data) > 2 * 1024 * 1024
    assert len(drawn(data)[1]) < 500_000


def test_formats_other_than_png_are_named_without_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    png, gif = saved(colored(8, 16)), saved(colored(8, 16), "GIF")
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert len(drawn(png)) == 2
    assert len(drawn(png, "sixel")) == 1
    assert drawn(gif, mime_type="image/gif") == [f"[image] image/gif · {len(gif) / 1024:.1f} KiB"]


def sixel_pixels(row: str) -> dict[tuple[int, int], tuple[int, ...]]:
    """Read the pixels that sixels draw, by column and row, in shares of 100."""
    placed = PLACED.fullmatch(row)
    assert placed is not None
    body = placed[2].removeprefix("\x1bP0;1;0q").removesuffix("\x1b\\")
    colors: dict[int, tuple[int, ...]] = {}
    pixels: dict[tuple[int, int], tuple[int, ...]] = {}
    x = y = color = 0
    for token in re.findall(r'"[\d;]+|#[\d;]+|!\d+.|[$\-?-~]', body):
        if token[0] == "#":
            color, *definition = map(int, token[1:].split(";"))
            if definition:
                colors[color] = tuple(definition[1:])
        elif token == "$":
            x = 0
        elif token == "-":
            x, y = 0, y + 6
        elif token[0] != '"':
            end = x + (int(token[1:-1]) if token[0] == "!" else 1)
            bits = [bit for bit in range(6) if (ord(token[-1]) - 63) >> bit & 1]
            pixels |= {(at, y + bit): colors[color] for at in range(x, end) for bit in bits}
            x = end
    return pixels


@pytest.mark.parametrize("size", [(1, 1), (7, 5), (30, 6), (64, 13), (200, 40)])
def test_sixels_draw_each_pixel_once_in_its_colour(size: tuple[int, int]) -> None:
    image = colored(*size)
    pixels = sixel_pixels(drawn(saved(image), "sixel")[1])
    assert pixels.keys() == {(x, y) for x in range(size[0]) for y in range(size[1])}
    for place, shares in pixels.items():
        color = image.getpixel(place)
        assert isinstance(color, tuple)
        assert all(abs(share - part / 2.55) <= 1 for share, part in zip(shares, color, strict=True))


def test_sixels_leave_out_what_is_transparent() -> None:
    image = Image.new("RGBA", (20, 12), (255, 0, 0, 255))
    image.paste((0, 255, 0, 0), (0, 0, 10, 12))
    pixels = sixel_pixels(drawn(saved(image), "sixel")[1])
    assert pixels == {(x, y): (100, 0, 0) for x in range(10, 20) for y in range(12)}


def _claiming(width: int, height: int) -> bytes:
    head = b"IHDR" + width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x08\x02\0\0\0"
    check = zlib.crc32(head).to_bytes(4, "big")
    return b"\x89PNG\r\n\x1a\n" + (13).to_bytes(4, "big") + head + check


HOSTILE = [
    "not base64!",
    "\x1b]52;c;aaaa\x07",
    "",
    b"",
    b"\x1b[31m",
    b"\x89PNG\r\n\x1a\n",
    _claiming(0, 10),
    _claiming(1 << 31, 1 << 31),
    _claiming(60_000, 60_000),
    b"GIF89a\xff\xff\xff\xff",
    b"GIF89a\x10\x27\x10\x27\x00\x00\x00\x2c",
    b"\xff\xd8\xff\xe0" + bytes(100),
    saved(colored(40, 40), "JPEG")[:300],
    saved(colored(40, 40), "GIF")[:60],
]


@pytest.mark.parametrize("drawing", ["kitty", "iterm", "sixel"])
@pytest.mark.parametrize("data", HOSTILE)
def test_hostile_images_are_named(data: bytes | str, drawing: ImageDrawing) -> None:
    rows = drawn(data, drawing, mime_type="image/\x1b[31mpng" + "x" * 1000)
    assert len(rows[0]) < 120
    assert "\x1b" not in rows[0]
    assert len(rows) == 1 or (data in HOSTILE[-2:] and PLACED.fullmatch(rows[1]))


def test_an_image_of_random_bytes_never_breaks_its_frame() -> None:
    rng = random.Random(7)
    whole = [saved(colored(30, 20), kind) for kind in ("PNG", "JPEG", "GIF", "WEBP")]
    for number in range(200):
        data = bytearray(rng.choice(whole))
        for _ in range(rng.randrange(1, 20)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        rows = drawn(bytes(data), rng.choice(("kitty", "iterm", "sixel")))
        assert all(PLACED.fullmatch(row) for row in rows[1:]), (number, rows)


TOOL = """
from pathlib import Path

def picture() -> bytes:
    \"\"\"Show a picture.\"\"\"
    return (Path(__file__).parent / "picture.png").read_bytes()
"""
CARD = """---
name: painter
model: passthrough
function_tools: [tools.py:picture]
---
Paint.
"""


@pytest.mark.parametrize(
    ("environ", "is_drawn"),
    [
        ({"TERM": "xterm-kitty"}, True),
        ({"TERM": "xterm-kitty", "TMUX": "/tmp/tmux"}, False),
        ({"TERM": "xterm-kitty", "FAST_AGENT_PLAIN": "1"}, False),
    ],
)
def test_the_program_draws_the_image_of_a_tool(
    project: Path, environ: dict[str, str], is_drawn: bool
) -> None:
    data = saved(colored(64, 48))
    (project / "picture.png").write_bytes(data)
    (project / "tools.py").write_text(TOOL)
    (project / "painter.md").write_text(CARD)
    environ = {"TERM_PROGRAM": "", "KONSOLE_VERSION": "", **environ}
    with Terminal("go", "--card", "painter.md", "--trust", environ=environ, rows=40) as terminal:
        terminal.wait_for(READY)
        terminal.line("***CALL_TOOL picture {}")
        terminal.wait_for("[image] image/png", "64 x 48", " out")
        terminal.line("/exit")
        assert terminal.wait() == 0
        sent = b"".join(re.findall(rb"\x1b_G[^;]*;([^\x1b]*)\x1b\\", terminal.raw))
        assert base64.b64decode(sent) == (data if is_drawn else b"")


def test_what_follows_an_image_stands_below_it(project: Path) -> None:
    picture = Image.new("RGB", (8, 100), (200, 0, 0))
    (project / "picture.png").write_bytes(saved(picture))
    (project / "tools.py").write_text(TOOL)
    (project / "painter.md").write_text(CARD)
    # The screen of the test does not know the protocol of iTerm2, and ignores its sequence.
    environ = {"TERM_PROGRAM": "iTerm.app", "TMUX": "", "STY": "", "ZELLIJ": ""}
    with Terminal("go", "--card", "painter.md", "--trust", environ=environ, rows=20) as terminal:
        terminal.wait_for(READY)
        for number in range(1, 5):
            terminal.line("***CALL_TOOL picture {}")
            answers = "answers"
            terminal.wait_until(
                lambda number=number: sum(" out" in row for row in terminal.everything) == number,
                answers,
            )
        terminal.line("last words")
        terminal.wait_until(
            lambda: sum(" out" in row for row in terminal.everything) == 5, "the last answer"
        )
        rows = terminal.everything
        places = [number for number, row in enumerate(rows) if "[image] " in row]
        assert len(places) == 4
        for place in places:
            assert rows[place + 1 : place + 8] == [""] * 7
            assert rows[place + 8 : place + 10] == ["", f"[image/png, {len(saved(picture))} bytes]"]
