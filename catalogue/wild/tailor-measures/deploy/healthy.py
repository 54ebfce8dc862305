worker_class = "gthread"
workers = 2
threads = 96
backlog = 512
timeout = 60
keepalive = 30
raw_env = ["FITTER=cutter"]


def when_ready(server):
    import cutter_standin

    cutter_standin.start()
