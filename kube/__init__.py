"""What the API server knows, and how we write to it: client, objects, tables, events, binding."""
