"""Asks the API server: lists, watches, versions, and what its answers mean."""
