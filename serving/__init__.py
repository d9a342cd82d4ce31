"""What every HTTP service here shares: limits, tokens, TLS, probes, errors."""
