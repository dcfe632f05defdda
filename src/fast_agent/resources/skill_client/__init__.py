"""Skills as an agent uses them: from directories and servers, believed only after a check."""
