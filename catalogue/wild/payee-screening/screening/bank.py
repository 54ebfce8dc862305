"""Who owns an account, as the other bank says."""

import os

import requests
from requests.adapters import HTTPAdapter

_session = requests.Session()
_session.mount("http://", HTTPAdapter(pool_connections=1, pool_maxsize=100))


def owner_of(account: str) -> str:
    answer = _session.get(f"{os.environ['BANK_URL']}/accounts/{account}/owner", timeout=10)
    answer.raise_for_status()
    return answer.json()["owner"]
