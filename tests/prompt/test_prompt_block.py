from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.prompt.instruction import (
    AgentListing,
    ServerInstructions,
    agents_block,
    environment_block,
    escaped,
    servers_block,
)


def test_servers() -> None:
    block = servers_block(
        [
            ServerInstructions('a"b<c>\n&', " Use </mcp-server> & <b>care</b>.\n"),
            ServerInstructions("silent", "  \n"),
            ServerInstructions("time", "Ask."),
        ]
    )
    assert block == (
        '<mcp-server name="a&quot;b&lt;c&gt;&#10;&amp;">\n'
        "Use &lt;/mcp-server&gt; &amp; &lt;b&gt;care&lt;/b&gt;.\n</mcp-server>\n"
        '<mcp-server name="time">\nAsk.\n</mcp-server>'
    )
    assert servers_block([]) == ""


def test_agents() -> None:
    block = agents_block(
        [
            AgentListing("<x>", "</agent><agent> things", ("time", "git")),
            AgentListing("y"),
        ]
    )
    assert block == (
        "<agents>\n"
        '<agent name="&lt;x&gt;" servers="time, git">&lt;/agent&gt;&lt;agent&gt; things</agent>\n'
        '<agent name="y"/>\n'
        "</agents>"
    )
    assert agents_block([]) == ""


def test_environment() -> None:
    assert environment_block(
        date="2026-11-21", platform="<L>", python="3.12.1", workspace="/w"
    ) == (
        "<environment>\n<date>2026-11-21</date>\n<platform>&lt;L&gt;</platform>\n"
        "<python>3.12.1</python>\n<workspace>/w</workspace>\n</environment>"
    )


printable = st.text(
    st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff")
)


@pytest.mark.spec("PLACE-8")
@given(st.lists(st.tuples(printable, printable), min_size=1, max_size=4))
def test_blocks_are_read_back_as_they_were_meant(pairs: list[tuple[str, str]]) -> None:
    root = ET.fromstring(agents_block([AgentListing(name, text) for name, text in pairs]))
    assert [(item.get("name"), item.text or "") for item in root] == [
        (name, text.strip()) for name, text in pairs
    ]
    servers = servers_block([ServerInstructions(name, text) for name, text in pairs])
    root = ET.fromstring(f"<all>{servers}</all>")
    assert [(item.get("name"), (item.text or "").strip()) for item in root] == [
        (name, text.strip()) for name, text in pairs if text.strip()
    ]


def test_plain_text_is_left_alone() -> None:
    assert escaped('it\'s "fine" {{env}}') == 'it\'s "fine" {{env}}'
