"""Reports: built from a record as pure data, then written to a medium."""
