"""Reading of the command line for every verb: its grammar, mistakes, flags of other tools, help."""
