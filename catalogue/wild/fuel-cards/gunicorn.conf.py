import os

bind = f"127.0.0.1:{os.environ['PORT']}"
worker_class = "gthread"
workers = 2
threads = 64 if os.environ["VARIANT"] == "healthy" else 3
keepalive = 30
backlog = 512
worker_tmp_dir = os.environ["TMPDIR"]
