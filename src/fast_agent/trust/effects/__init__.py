"""Effects: what the text of a found set would do, worked out without doing it."""
