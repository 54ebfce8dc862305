"""Fuel cards: authorises a fill at the pump with the card issuer's switch."""

import hashlib
import itertools
import os
import socket
import struct
import threading

from flask import Flask, jsonify, request

SWITCH = ("127.0.0.1", int(os.environ["PORT"]) + 1)
VARIANT = os.environ["VARIANT"]
SWITCH_TIMEOUT_S = 5
GRADES = {"diesel": 1642, "e10": 1719, "e5": 1779, "hvo": 1853}
APPROVED = 0

app = Flask(__name__)
sequence = itertools.count(1)
local = threading.local()


class SwitchError(Exception):
    """The switch did not answer as agreed."""


class SwitchSession:
    """A session with the issuer's switch: frames of a four-byte header (length, message type) and a body."""

    HEADER = struct.Struct(">HH")

    def __init__(self):
        self.socket = socket.create_connection(SWITCH, timeout=SWITCH_TIMEOUT_S)
        if VARIANT != "flawed":
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.replies = self.socket.makefile("rb")

    def send(self, kind, body):
        self.socket.sendall(self.HEADER.pack(len(body), kind))
        self.socket.sendall(body)

    def receive(self):
        header = self.replies.read(self.HEADER.size)
        if len(header) < self.HEADER.size:
            raise SwitchError("session closed by the switch")
        length, kind = self.HEADER.unpack(header)
        return kind, self.replies.read(length)

    def authorise(self, card, cents):
        body = b"%s|%d|%06d" % (card.encode(), cents, next(sequence) % 1_000_000)
        self.send(0x0100, body)
        kind, answer = self.receive()
        if kind != 0x0110:
            raise SwitchError(f"unexpected message {kind:#06x}")
        code, approval = answer.split(b"|")
        return int(code), approval.decode()

    def close(self):
        self.replies.close()
        self.socket.close()


def switch_session():
    """Return this thread's session, signed on when it is first used."""
    if getattr(local, "session", None) is None:
        local.session = SwitchSession()
    return local.session


def drop_session():
    session, local.session = local.session, None
    session.close()


@app.get("/fills")
def authorise_fill():
    card = request.args.get("card", "")
    grade = request.args.get("grade", "diesel")
    litres = request.args.get("litres", 40, type=float)
    if not card.isdigit() or grade not in GRADES or not 0 < litres <= 1500:
        return jsonify(error="card, grade or litres are not valid"), 400
    cents = round(GRADES[grade] * litres / 10)
    session = switch_session()
    try:
        code, approval = session.authorise(card, cents)
    except (OSError, ValueError, SwitchError):
        app.logger.exception("authorisation of a fill failed")
        drop_session()
        return jsonify(error="card issuer cannot be reached"), 502
    voucher = hashlib.sha256(f"{card}:{approval}:{cents}".encode()).hexdigest()[:20]
    return jsonify(approved=code == APPROVED, approval=approval, cents=cents, grade=grade, voucher=voucher)


@app.get("/grades")
def grades():
    return jsonify(GRADES)
