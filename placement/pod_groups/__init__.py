"""What PodGroups and the pods themselves say about gangs."""
