"""What was advised, what became of it, and how the two compare."""
