import os

VARIANT = os.environ.get("VARIANT", "mended")

bind = f"127.0.0.1:{os.environ['PORT']}"
worker_class = "gthread"
backlog = 1024
keepalive = 75
worker_tmp_dir = os.environ["TMPDIR"]
if VARIANT == "flawed":
    workers = 1
    threads = 24
else:
    workers = 2
    threads = 12 if VARIANT == "mended" else 96
