"""`webhook`: the mutating admission webhook."""
