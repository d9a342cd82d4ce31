"""Pods that were given a node and are not seen there yet."""
