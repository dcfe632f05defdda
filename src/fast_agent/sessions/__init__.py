"""Sessions: the log of a conversation, and the transcript of everything said in it."""
