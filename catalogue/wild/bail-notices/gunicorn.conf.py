import os

bind = f"127.0.0.1:{int(os.environ['PORT']) + 1}"
worker_class = "gthread"
workers = 1
threads = 140
keepalive = 75
backlog = 1024
worker_tmp_dir = os.environ["TMPDIR"]
