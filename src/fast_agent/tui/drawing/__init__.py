"""What the terminal shows: rows of text, Markdown, images, and the screen they stand on."""
