"""Versions of programs that were built from Go modules, which do not all know their own."""

from __future__ import annotations

import re
import shutil
import subprocess


def module_version(name: str) -> str:
    """`hey v0.1.5`, from the build information in the binary; `version unknown` without Go."""
    path, go = shutil.which(name), shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if path is None or go is None:
        return f"{name}, version unknown"
    done = subprocess.run([go, "version", "-m", path], capture_output=True, text=True, check=False)
    match = re.search(r"^\s*mod\s+\S+\s+(\S+)", done.stdout, re.MULTILINE)
    return f"{name} {match[1]}" if match else f"{name}, version unknown"
