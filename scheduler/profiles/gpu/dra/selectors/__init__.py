"""CEL expressions that select devices."""
