"""`rebalance`: move pods off the nodes that will be hot tonight."""
