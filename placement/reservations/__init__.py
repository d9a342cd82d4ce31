"""Which room is reserved for pods that are still to come, and how the tables of every process hold it."""
