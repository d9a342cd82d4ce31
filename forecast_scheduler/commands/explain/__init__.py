"""`explain`: why a pod goes where it goes."""
