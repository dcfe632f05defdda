"""Prompt: placeholders, and the instruction rendered from them."""
