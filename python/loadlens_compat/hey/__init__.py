"""The `loadlens hey` verb and the output layout of hey."""
