"""Binds a pod: the steps without I/O, and the requests."""
