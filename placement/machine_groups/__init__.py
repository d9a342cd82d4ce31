"""Machine groups: whose they are, who else may use them while they are idle."""
