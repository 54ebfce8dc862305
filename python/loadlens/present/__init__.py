"""Presentation shared by every medium: colours, number format, words, charts. No I/O, no layout."""
