"""Queues of pods: which pods wait in which, in what order they go, and who of those that share one is next."""
