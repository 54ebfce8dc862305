worker_class = "gthread"
workers = 1
threads = 32
backlog = 512
timeout = 60
keepalive = 30
