"""Output of ab, computed from our own requests: text, tables, and the files of -g and -e."""
