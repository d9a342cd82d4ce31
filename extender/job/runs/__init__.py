"""How long runs take: what is learned, what is expected of a pod, and when it has to start at the latest."""
