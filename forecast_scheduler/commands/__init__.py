"""One file per command; each composes functions of the other packages and prints what they return."""
