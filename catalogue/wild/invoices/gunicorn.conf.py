import os

bind = f"127.0.0.1:{os.environ['PORT']}"
if os.environ["VARIANT"] == "flawed":
    worker_class = "sync"
    workers = 8
else:
    worker_class = "gthread"
    workers, threads = 2, 50
timeout = 60
preload_app = False
