"""Signals of services, runtimes and the machine: collected during a trial, read per trial afterwards."""
