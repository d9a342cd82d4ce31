"""The live cluster in columns: nodes and pods from the API server or a file, tables kept up to date event by event."""
