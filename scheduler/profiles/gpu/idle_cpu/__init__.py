"""Idle cores of GPU nodes: who may use them, and who goes first when they are needed."""
