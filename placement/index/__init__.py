"""What filters and standard scores look things up in: tables that follow the cluster change by change."""
