"""Places Reservations as pods are placed, and writes what becomes of them."""
