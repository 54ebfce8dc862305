"""Services and their hosts during a case: processes, gauges, counters, CPU per request."""
