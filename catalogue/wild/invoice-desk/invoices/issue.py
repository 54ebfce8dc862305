from . import tax_office
from .db import pool

TOTAL = """
    select o.name, sum(l.cents) from orders o join order_lines l on l.order_id = o.id where o.id = %s group by o.name
"""
WRITE = "insert into invoices (order_id, cents, signature) values (%s, %s, %s) returning id"


class NoSuchOrder(Exception):
    pass


def _read(connection, order_id):
    row = connection.execute(TOTAL, [order_id]).fetchone()
    if row is None:
        raise NoSuchOrder(order_id)
    return row


def _write(connection, order_id, total, signature):
    return connection.execute(WRITE, [order_id, total, signature]).fetchone()[0]


def in_one_go(order_id):
    with pool.connection() as connection:
        name, total = _read(connection, order_id)
        signature = tax_office.sign(order_id, total)  # while the order is at hand
        number = _write(connection, order_id, total, signature)
    return {"number": number, "to": name, "cents": total, "signature": signature}


def in_steps(order_id):
    with pool.connection() as connection:
        name, total = _read(connection, order_id)
    signature = tax_office.sign(order_id, total)
    with pool.connection() as connection:
        number = _write(connection, order_id, total, signature)
    return {"number": number, "to": name, "cents": total, "signature": signature}
