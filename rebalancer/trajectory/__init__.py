"""What the rebalancer would have done to your own cluster: recorded days played forward from the recorded placement."""
