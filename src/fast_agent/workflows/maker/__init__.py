"""MAKER: small steps that must be right, each decided by a vote of independent answers."""
