"""Rules about connections, ports and bandwidth."""
