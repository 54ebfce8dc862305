"""What services and their hosts did during a case: processes, gauges, counters, CPU per request."""
