"""The page in the browser on the command line."""
