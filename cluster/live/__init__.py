"""What is going on right now: usage of the nodes as last measured, and pods that no measurement has seen yet."""
