"""Small services for `loadlens demo`: one has no flaw, each of the others has one."""
