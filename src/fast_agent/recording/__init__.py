"""Recordings of runs, and replays that ask nothing outside."""
