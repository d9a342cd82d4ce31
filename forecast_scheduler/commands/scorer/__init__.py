"""`scorer`: the live scorer, and how every command that needs one puts it together."""
