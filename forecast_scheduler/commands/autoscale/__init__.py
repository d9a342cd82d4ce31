"""`autoscale`: replicas, nodes and requests in time."""
