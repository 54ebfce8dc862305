"""Fits the outline of a piece to a customer's measures."""

import math

EASE_CM = {"waistcoat": 6.0, "trousers": 3.0}
PIECES = {
    "waistcoat": [("front", 0.27, 62.0), ("back", 0.24, 60.0), ("lining", 0.26, 58.0)],
    "trousers": [("front leg", 0.26, 108.0), ("back leg", 0.31, 110.0), ("waistband", 0.52, 5.0)],
}
STEPS = 40
ROUNDS = 18


def blocks(garment, measures):
    ease = EASE_CM[garment]
    girth = max(measures["chest"], measures["hip"]) + ease
    return [{"piece": name, "w": round(girth * share, 1), "h": height} for name, share, height in PIECES[garment]]


def _outline(width, height, bulge):
    return [
        (
            width * (0.5 + 0.5 * math.cos(2 * math.pi * step / STEPS)) + bulge * math.sin(4 * math.pi * step / STEPS),
            height * (0.5 + 0.5 * math.sin(2 * math.pi * step / STEPS)),
        )
        for step in range(STEPS)
    ]


def _length(points):
    return sum(math.dist(a, b) for a, b in zip(points, points[1:] + points[:1]))


def _smooth(points):
    return [
        (0.25 * a[0] + 0.5 * b[0] + 0.25 * c[0], 0.25 * a[1] + 0.5 * b[1] + 0.25 * c[1])
        for a, b, c in zip(points[-1:] + points[:-1], points, points[1:] + points[:1])
    ]


def fit(block, waist):
    target = 2 * (block["w"] + block["h"]) * 0.86
    low, high = 0.0, waist / 4
    for _ in range(ROUNDS):
        bulge = (low + high) / 2
        points = _outline(block["w"], block["h"], bulge)
        for _ in range(3):
            points = _smooth(points)
        if _length(points) < target:
            low = bulge
        else:
            high = bulge
    return {**block, "seam_cm": round(_length(points), 1), "dart_cm": round(bulge, 2)}
