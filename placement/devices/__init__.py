"""Which cards a node has, who has which of them, and what a pod asks for."""
