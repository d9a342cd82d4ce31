"""`advise`: place pods through an untouched kube-scheduler."""
