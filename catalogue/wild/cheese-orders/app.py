"""Orders of a cheese dairy: takes an order of a shop and mails the confirmation before it answers."""

import asyncio
import contextlib
import hashlib
import itertools
import os
import smtplib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from email.message import EmailMessage

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

VARIANT = os.environ.get("VARIANT", "mended")
RELAY_PORT = int(os.environ["PORT"]) + 1
WHEELS = {"gouda": (118.0, 8), "comte": (640.0, 38), "tilsit": (74.5, 5), "stilton": (131.0, 7)}
SHOPS = ("dockside", "market-hall", "old-mill", "station", "university")


@dataclass(frozen=True)
class Order:
    number: int
    shop: str
    cheese: str
    wheels: int

    @property
    def price(self) -> float:
        each, _ = WHEELS[self.cheese]
        return round(each * self.wheels * (0.97 if self.wheels >= 4 else 1.0), 2)

    @property
    def kilos(self) -> int:
        return WHEELS[self.cheese][1] * self.wheels

    @property
    def slip(self) -> str:
        return hashlib.sha256(f"{self.number}:{self.shop}:{self.price}".encode()).hexdigest()[:10]


class Mailer:
    """Sends confirmations over the relay of the dairy."""

    def __init__(self) -> None:
        self.senders = ThreadPoolExecutor(96, thread_name_prefix="mail")

    def write(self, order: Order) -> EmailMessage:
        message = EmailMessage()
        message["From"] = "orders@dairy.example"
        message["To"] = f"{order.shop}@shops.example"
        message["Subject"] = f"Order {order.number} is confirmed"
        message.set_content(f"{order.wheels} wheels of {order.cheese}, {order.kilos} kg, {order.price:.2f}\n{order.slip}")
        return message

    def deliver(self, message: EmailMessage) -> None:
        with smtplib.SMTP("127.0.0.1", RELAY_PORT, local_hostname="dairy.example", timeout=10) as relay:
            relay.sendmail(message["From"], [message["To"]], message.as_bytes())

    async def confirm(self, order: Order) -> None:
        message = self.write(order)
        if VARIANT == "flawed":
            self.deliver(message)
        else:
            await asyncio.get_running_loop().run_in_executor(self.senders, self.deliver, message)


mailer = Mailer()
numbers = itertools.count(90_001)


async def place(request: Request) -> Response:
    number = next(numbers)
    cheese = request.query_params.get("cheese") or list(WHEELS)[number % len(WHEELS)]
    if cheese not in WHEELS:
        raise HTTPException(404, f"we make no {cheese}")
    order = Order(number, SHOPS[number % len(SHOPS)], cheese, number % 6 + 1)
    await mailer.confirm(order)
    return JSONResponse({"order": order.number, "shop": order.shop, "kg": order.kilos, "price": order.price})


async def prices(request: Request) -> Response:
    return JSONResponse({cheese: price for cheese, (price, _) in WHEELS.items()})


async def up(request: Request) -> Response:
    return PlainTextResponse("up\n")


@contextlib.asynccontextmanager
async def lifespan(app: Starlette):
    yield
    mailer.senders.shutdown(wait=False, cancel_futures=True)


app = Starlette(
    routes=[Route("/orders/next", place), Route("/prices", prices), Route("/up", up)],
    lifespan=lifespan,
)
