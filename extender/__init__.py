"""How kube-scheduler asks us: the HTTP extender, its protocol, its decisions and the shadow."""
