"""May this pod be moved, and what does it cost? By state, owners, and what other tools are asked not to do."""
