"""Types of cards: which a pod accepts, which are scarce, and who is kept off those."""
