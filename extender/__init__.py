"""How kube-scheduler asks us: the HTTP extender and its protocol."""
