"""Other programs' inputs and outputs."""
