"""Holds new pods that ask for advice until the advisor has named their node."""
