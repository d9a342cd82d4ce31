"""`demo`: the whole way on the bundled sample."""
