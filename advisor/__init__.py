"""Places pods through an untouched kube-scheduler: nominates their node, then removes our scheduling gate."""
