"""The webhook's own certificate authority: certificates that renew themselves, one truth for several replicas."""
