"""Reads Prometheus (or anything that speaks its query API) one UTC day at a time."""
