"""File tools: an agent reads, searches and edits the files of the workspace."""
