"""Command line of the folder: `python -m catalogue.wild serve NAME VARIANT --port N`."""

from catalogue.wild.serve import main

if __name__ == "__main__":
    raise SystemExit(main())
