"""Forms in which clusters expose the same facts, one entry each: what it is, how it is recognised, how it is read."""
