"""An agent of no cost, run as a program: it answers every request as a prompt is answered."""

from __future__ import annotations

import os
import re

_ID = re.compile(rb'"id": ?(\d+)')
_ANSWER = (
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"20260101-000000-00000000",'
    b'"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hello"}}}}\n'
    b'{"jsonrpc":"2.0","id":%b,"result":{"stopReason":"end_turn","sessionId":"echo",'
    b'"usage":{"inputTokens":2,"outputTokens":2,"totalTokens":4}}}\n'
)

if __name__ == "__main__":
    while asked := os.read(0, 1 << 16):
        for number in _ID.findall(asked):
            os.write(1, _ANSWER % number)
