"""JSON-RPC 2.0: messages, lines, and peers that send each other requests in both directions."""
