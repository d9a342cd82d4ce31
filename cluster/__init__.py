"""What is on the nodes now and what it will use: live tables, assumed pods, held rooms, usage, self-check."""
