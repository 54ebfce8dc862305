"""Thresholds that several rules and gates share: one name, one value, one reason each.

A threshold that only one rule uses, and that its page explains, stands in the rule next to that page. Limits
of the mathematics of load curves stand in `estimate/saturation.py`.
"""

from __future__ import annotations

from typing import Final

# --- how full is full -------------------------------------------------------------------------------------

LOOP_HELD: Final = 0.7  # of the moments at which an event loop is in a request
SATURATED: Final = 0.85  # of a resource in use: a queue takes 6.7 times its idle time there
IDLE_CPU: Final = 0.7  # of the cores, at most: computing adds little waiting of its own up to there
FULL_CORES: Final = 0.9  # of cores that generator and service share: beyond, they take them from each other
FULL_MACHINE: Final = 0.9  # of its cores: the kernel's counters are exact to 2 to 3 %
THROTTLED: Final = 0.05  # of the periods of a quota: one request in twenty meets a stop, it shows at p95

# --- what others take -------------------------------------------------------------------------------------

OTHERS_MATTER: Final = 0.10  # of the machine: beyond, what the service lacked may have been taken from it
SERVICE_WAITS: Final = 0.05  # of the time that its threads run: a response time moves by as much

STOLEN_MATTERS: Final = 0.01  # of the machine's time, by the hypervisor: CPU time of a request varies by more

# --- what the figures stand on ----------------------------------------------------------------------------

FEW_FAIL: Final = 0.01  # of the requests: beyond, times and rates of the rest are not those of all
PAGED_IN: Final = 0.01  # pages from storage for a request: more, and requests wait for storage to be read

# --- who waits --------------------------------------------------------------------------------------------

UNCOUPLED: Final = 0.2  # wait of a probe over that of the load: 0.09 where cores are shared, 1 in one line
ONE_HOLDER: Final = 1.5  # holders on average: two are a pool
SAMPLED_HOLDER: Final = 0.75  # of sampled moments: if SATURATED is true, one in eight times 13 show less
WAITERS: Final = 0.5  # on average: a line before a resource at nine tenths of its capacity holds more
