"""Starts PostgreSQL in a temporary folder, fills it, then becomes gunicorn."""
import glob
import os
import shutil
import subprocess
import sys
import time

port = sys.argv[1]
home = os.path.join(os.environ["TMPDIR"], "postgres")
os.environ["PGHOST"] = home
tools = os.path.dirname(os.path.realpath(shutil.which("initdb") or sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))[-1]))
who = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.getuid() == 0 else []
os.mkdir(home)
if who:
    shutil.chown(home, "postgres")
subprocess.run([*who, f"{tools}/initdb", "-D", home, "-U", "postgres", "-A", "trust", "-N"], check=True, stdout=subprocess.DEVNULL)
subprocess.Popen([*who, f"{tools}/postgres", "-D", home, "-k", home, "-h", "", "-F", "-c", "max_connections=120"])
while subprocess.run([f"{tools}/pg_isready", "-q"]).returncode:
    time.sleep(0.2)
subprocess.run([sys.executable, "-c", "import blog.site as s; s.fill()"], check=True)
os.execvp("gunicorn", ["gunicorn", "-k", "gthread", "--threads", "80", "-b", f"127.0.0.1:{port}", "wsgi"])
