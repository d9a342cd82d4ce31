"""The live cluster in columns, kept up to date object by object."""
