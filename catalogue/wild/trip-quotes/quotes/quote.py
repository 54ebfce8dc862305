"""A quote: when the ship sails, the fare, and what a member saves. Without a discount it is the list price."""
from .retry import Breaker, Unavailable, retrying

discounts = Breaker()


async def insistent(timetable, line, route, date, member):
    departure = await timetable.departure(route, date)
    fare = await retrying(lambda: line.fare(route), times=3)
    try:
        discount = await retrying(lambda: line.discount(member), times=3)
    except Unavailable:
        discount = 0
    return _quote(departure, fare, discount)


async def lenient(timetable, line, route, date, member):
    departure = await timetable.departure(route, date)
    fare = await retrying(lambda: line.fare(route), times=2, pause=0.1)
    try:
        discount = await discounts.call(lambda: line.discount(member))
    except Unavailable:
        discount = 0
    return _quote(departure, fare, discount)


def _quote(departure, fare, discount):
    return {**departure, "fare": fare, "discount": discount, "total": round(fare * (100 - discount) / 100, 2)}
