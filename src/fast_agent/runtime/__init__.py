"""Instances, the turn loop, instructions, budgets, agents as tools."""
