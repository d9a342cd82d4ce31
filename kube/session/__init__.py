"""Sends requests to the API server from one event loop, hundreds at a time, and repeats them where that may help."""
