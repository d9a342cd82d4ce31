"""`train`: the nightly run."""
