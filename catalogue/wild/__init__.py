"""Small real services, each with one flaw: specimens that were written without sight of any rule."""
