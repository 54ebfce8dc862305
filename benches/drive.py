"""Run the engine on one plan and print its result: the engine and nothing else of Loadlens.

Without an argument it only says which engine it is (exit 0), or why there is none (exit 1).
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

PACKAGE = Path(__file__).parent.parent / "python" / "loadlens"


def engine() -> ModuleType:
    """Load the compiled module next to the Python sources, without the package around it."""
    built = sorted(PACKAGE.glob("_engine*.so"))
    if not built:
        sys.exit(f"no engine in {PACKAGE}: build it with `make install`")
    loader = importlib.machinery.ExtensionFileLoader("_engine", str(built[0]))
    spec = importlib.util.spec_from_loader("_engine", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def main() -> int:
    module = engine()
    if len(sys.argv) < 2:
        print(f"loadlens {module.version()}")
        return 0
    run = module.Run(Path(sys.argv[1]).read_text())
    run.start()
    while not run.wait(0.2):
        run.progress()  # as the live view does
    print(run.result())
    return 0


if __name__ == "__main__":
    sys.exit(main())
