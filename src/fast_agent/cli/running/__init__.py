"""What the commands share that run agents."""
