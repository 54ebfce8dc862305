import os

variant = os.environ.get("VARIANT", "flawed")


class Conf:
    # threads for plain `def` endpoints; lowered in the incident of March, when the ERP had trouble
    endpoint_threads = 16 if variant == "flawed" else 150
    erp_url = f"http://127.0.0.1:{int(os.environ['PORT']) + 1}"
    erp_seconds = 0.6 if variant == "healthy" else 0.4
