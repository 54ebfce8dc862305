from datetime import datetime

from sqlalchemy import ForeignKey, create_engine, func
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, sessionmaker

from . import config

engine = create_engine(config.DATABASE, pool_size=8, max_overflow=0, pool_timeout=60)
Session = sessionmaker(engine, expire_on_commit=False)


class Base(DeclarativeBase):
    pass


class Room(Base):
    __tablename__ = "rooms"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    price_cents: Mapped[int]


class Booking(Base):
    __tablename__ = "bookings"
    id: Mapped[int] = mapped_column(primary_key=True)
    room_id: Mapped[int] = mapped_column(ForeignKey("rooms.id"))
    authorisation: Mapped[str]
    booked_at: Mapped[datetime] = mapped_column(server_default=func.now())


def create() -> None:
    Base.metadata.create_all(engine)
    with Session.begin() as session:
        session.add_all(Room(name=f"Room {n}", price_cents=6000 + 150 * n) for n in range(1, 41))
