"""Asks the API server to evict pods, so that disruption budgets decide, and reads what it answers."""
