"""A small registration service whose password hash may block the event loop, or not."""
