"""Named policies: which filters and scores count for which pods, changed without a restart."""
