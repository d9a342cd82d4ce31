"""One replica leads at a time: a Lease says which."""
