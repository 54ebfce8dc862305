from prometheus_flask_exporter.multiprocess import GunicornInternalPrometheusMetrics

worker_class = "gthread"
workers = 4
threads = 70
keepalive = 30
timeout = 60
backlog = 512
loglevel = "warning"
control_socket_disable = True


def child_exit(server, worker):
    GunicornInternalPrometheusMetrics.mark_process_dead_on_child_exit(worker.pid)
