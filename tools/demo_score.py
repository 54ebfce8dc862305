"""Run every flaw of `loadlens demo` some times, and print how often the diagnosis named it.

    python tools/demo_score.py              ten times each, about 20 minutes
    python tools/demo_score.py 5 lock slow-path  five times each of two flaws

A run that other programs on the machine disturbed is printed and does not count. A flaw that is named fewer
than nine times in ten on an idle machine is to be left out (CONTRIBUTING.md).
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any, Final

from loadlens.demo import FLAWS
from loadlens.demo.answer_key import OF_THE_MACHINE

RUNS: Final = 10


def main() -> int:
    words = sys.argv[1:]
    runs = int(words.pop(0)) if words and words[0].isdecimal() else RUNS
    for name in words or list(FLAWS):
        named = counted = 0
        for _ in range(runs):
            began = time.monotonic()
            answer = diagnosis(name)
            limit = answer["explanation"]["limit"]
            is_disturbed = bool(OF_THE_MACHINE & {each["rule"] for each in answer["explanation"]["findings"]})
            named += answer["key"]["is_named"]
            counted += answer["key"]["is_named"] or not is_disturbed
            state = "disturbed" if is_disturbed else "undisturbed"
            print(f"  {name}: {limit} in {time.monotonic() - began:.0f} s, {state}", flush=True)
        print(f"{name}: named in {named} of {counted} runs that count, of {runs}", flush=True)
    return 0


def diagnosis(name: str) -> dict[str, Any]:
    """Return the JSON of one run."""
    command = [sys.executable, "-m", "loadlens", "demo", name, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


if __name__ == "__main__":
    sys.exit(main())
