"""Small random problems of the rebalancer, and their exact optimum."""
