"""How loaded each node is and will be, what it scores for a pod, and what placing by it would have changed."""
