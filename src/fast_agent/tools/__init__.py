"""Tools an agent can call: functions, hooks around them, the shell, a user."""
