"""What an agent remembers: its transcript, its history, how both are recorded and compacted."""
