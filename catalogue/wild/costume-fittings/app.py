"""Fittings of a theatre's wardrobe: who tries on which costume, and in which room."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field

import requests
from flask import Flask, abort, jsonify, request
from requests.adapters import HTTPAdapter

VARIANT = os.environ["VARIANT"]
TAILORS = f"http://127.0.0.1:{int(os.environ['PORT']) + 2}"
ROOMS = ("Gallery", "Mirror", "Attic")


@dataclass
class Costume:
    code: str
    role: str
    fittings: int = 0
    last_room: str = ROOMS[-1]


@dataclass
class Wardrobe:
    """Costumes and their fittings, kept in memory as long as the season lasts."""

    costumes: dict[str, Costume] = field(default_factory=dict)
    guard: threading.Lock = field(default_factory=threading.Lock)

    def book(self, costume: Costume) -> int:
        costume.last_room = ROOMS[(ROOMS.index(costume.last_room) + 1) % len(ROOMS)]
        costume.fittings += 1
        return costume.fittings

    def propose(self, costume: Costume, size: int) -> dict:
        """Propose the next fitting, with the tailor who has time for it."""
        tailor = None
        if VARIANT != "flawed":
            tailor = free_tailor(costume.role, size)
        with self.guard:
            tailor = tailor or free_tailor(costume.role, size)
            number = self.book(costume)
            room = costume.last_room
        return {
            "costume": costume.code,
            "role": costume.role,
            "fitting": number,
            "room": room,
            "tailor": tailor["name"],
            "minutes": tailor["minutes"],
        }


def season() -> Wardrobe:
    roles = ("Tosca", "Scarpia", "Figaro", "Susanna", "Papageno", "Carmen", "Mimi", "Rodolfo")
    wardrobe = Wardrobe()
    for number in range(240):
        code = f"C{number:03}"
        wardrobe.costumes[code] = Costume(code, roles[number % len(roles)])
    return wardrobe


app = Flask(__name__)
wardrobe = season()
session = requests.Session()
session.mount("http://", HTTPAdapter(pool_connections=1, pool_maxsize=160))


def free_tailor(role: str, size: int) -> dict:
    answer = session.get(f"{TAILORS}/free", params={"role": role, "size": size}, timeout=10)
    answer.raise_for_status()
    return answer.json()


@app.get("/costumes/<code>/fitting")
def fitting(code: str):
    costume = wardrobe.costumes.get(code)
    if costume is None:
        abort(404)
    size = request.args.get("size", 40, type=int)
    if not 32 <= size <= 64:
        abort(400)
    return jsonify(wardrobe.propose(costume, size))


@app.get("/costumes")
def costumes():
    return jsonify(count=len(wardrobe.costumes))
