"""Which nodes a pod may use, and in which order: what the extender and the scheduler share."""
