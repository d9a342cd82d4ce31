"""Preemption: which pods of lower priority give way to one that finds no node, and how they are evicted."""
