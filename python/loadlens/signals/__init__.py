"""What services, runtimes and the machine report about themselves: collected, then read per trial."""
