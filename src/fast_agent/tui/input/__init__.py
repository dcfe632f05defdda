"""What a user types: keys, the line they are edited in, and what it completes and attaches."""
