"""Which nodes will be needed soon: room is kept for pods to come, and nodes that the coming hours need stay."""
