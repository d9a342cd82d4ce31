"""Real servers, processes and clusters that tests, benchmarks and `make cluster` share; not part of the wheel."""
