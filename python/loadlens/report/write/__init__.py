"""A Report, or the result of one load, in a medium: terminal, HTML, Markdown, JSON."""
