"""Message and content values, their two file formats, and the shared history."""
