"""Jobs that may wait: when the cluster has room for them, which nodes they keep off, and whether they were on time."""
