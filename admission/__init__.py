"""What happens to a pod as it is created: templates, the webhook and its certificates."""
