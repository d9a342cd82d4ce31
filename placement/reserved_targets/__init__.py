"""Which node is kept for the replacement of a pod that the rebalancer moves, for every part that places pods."""
