worker_class = "gthread"
workers = 2
threads = 32
backlog = 512
timeout = 60
keepalive = 30
