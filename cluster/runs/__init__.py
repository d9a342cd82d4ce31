"""How long pods of jobs run: which pods these are, what is learned of them, and what is expected."""
