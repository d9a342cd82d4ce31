"""What of API objects matters, as values: pods, nodes, constraints, volumes, quantities."""
