"""A service with a command of its own: the usual subject of a study."""

from __future__ import annotations

from loadlens.testbed.commands import arguments
from loadlens.testbed.parts.part import Layout, Site


class Process:
    """Runs the study's `start` in the service's folder."""

    program = None

    def url(self, host: str, port: int) -> str:
        """Return an HTTP URL."""
        return f"http://{host}:{port}"

    def lay_out(self, site: Site) -> Layout:
        """Plan the process with the study's command."""
        argv = arguments(site.service.start, site.names, where=f"{site.where}.start")
        return Layout(argv=argv, cwd=site.home)
