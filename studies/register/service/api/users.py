"""Registration and login."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, HTTPException, status
from pydantic import AfterValidator, BaseModel, Field
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from api.database import Session
from api.passwords import hash_password, verify_password
from api.schema import User

router = APIRouter(prefix="/api/users")

_BCRYPT_LIMIT_BYTES = 72  # bcrypt sees no more of a password than this


def _fits_bcrypt(password: str) -> str:
    if len(password.encode()) > _BCRYPT_LIMIT_BYTES:
        raise ValueError(f"at most {_BCRYPT_LIMIT_BYTES} bytes")
    return password


class Credentials(BaseModel):
    username: Annotated[str, Field(min_length=1, max_length=150)]
    password: Annotated[str, Field(min_length=1), AfterValidator(_fits_bcrypt)]


class UserOut(BaseModel):
    id: int
    username: str


@router.post("/register/", status_code=status.HTTP_201_CREATED)
async def register(credentials: Credentials, session: Session) -> UserOut:
    """Hash the password and store the user; 409 if the name is taken."""
    user = User(username=credentials.username, password_hash=await hash_password(credentials.password))
    session.add(user)
    try:
        await session.commit()
    except IntegrityError:
        # only this: a locked database must stay the 500 that the published report saw
        raise HTTPException(status.HTTP_409_CONFLICT, "this username is taken") from None
    return UserOut(id=user.id, username=user.username)


@router.post("/login/")
async def login(credentials: Credentials, session: Session) -> UserOut:
    """Verify the password; 401 if the user or the password is wrong."""
    user = await session.scalar(select(User).where(User.username == credentials.username))
    if user is None or not await verify_password(credentials.password, user.password_hash):
        raise HTTPException(status.HTTP_401_UNAUTHORIZED, "wrong username or password")
    return UserOut(id=user.id, username=user.username)
