"""How much of the idle cards no pod of the mix can use, and where a pod makes the least of it."""
