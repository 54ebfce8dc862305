import os

bind = "127.0.0.1:" + os.environ["PORT"]
worker_class = "gthread"
workers = 1
threads = 80
keepalive = 15
