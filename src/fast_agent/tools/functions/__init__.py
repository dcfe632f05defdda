"""Python functions as tools: of cards, of programs, and how they are called."""
