"""Runs on Temporal: the loop in workflow code, its steps as activities on any machine."""
