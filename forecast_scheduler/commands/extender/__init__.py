"""`extender`: answers kube-scheduler."""
