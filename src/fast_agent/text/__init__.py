"""Source files, spans, frontmatter, YAML with positions. No domain words."""
