"""Binding pods: asynchronous, many in flight, and whatever follows from what the API server answers."""
