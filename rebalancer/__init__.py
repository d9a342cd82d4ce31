"""Moves pods off the nodes that will be hot tonight: plans in the valley, evicts a few at a time, grades itself."""
