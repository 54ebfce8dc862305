"""Second answers that tests compare with: closed forms, simulations, and slow readings."""
