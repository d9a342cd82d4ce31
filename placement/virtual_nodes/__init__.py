"""Which nodes belong to a serverless provider."""
