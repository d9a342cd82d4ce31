"""`replay`: plays recorded days back under several placement rules."""
