"""Certificates of a fleet: an authority of its own, and one each for scheduler, nodes and controller.

Dask checks that a certificate is of the authority and not which name it has, so the authority signs for one
fleet alone. Needs the package `cryptography`, of the extra `fleet`.
"""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from loadlens.errors import FULL, RecordError, UsageError, reason_of

AUTHORITY: Final = "ca"
PARTIES: Final = ("scheduler", "node", "controller")
VALID: Final = timedelta(days=365)
SKEW: Final = timedelta(days=1)  # clocks of nodes may be behind


def make(folder: Path) -> tuple[Path, ...]:
    """Write NAME.pem and NAME.key of the authority and of each party, readable by their owner alone.

    Raises:
        UsageError: One of the files is there, or the folder cannot be written.
        RecordError: The disk or a limit of files is full; no file stays.
    """
    files = [folder / f"{name}.{ending}" for name in (AUTHORITY, *PARTIES) for ending in ("pem", "key")]
    there = [file for file in files if os.path.lexists(file)]
    if there:
        raise UsageError(f"{there[0]} is there and is not replaced", hint="another folder, or remove it")
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _certificate(AUTHORITY, authority_key, None, authority_key)
    made = [(AUTHORITY, authority, authority_key)]
    for party in PARTIES:
        key = ec.generate_private_key(ec.SECP256R1())
        made.append((party, _certificate(party, key, authority, authority_key), key))
    begun: list[Path] = []
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, certificate, key in made:
            secret = key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            public = certificate.public_bytes(serialization.Encoding.PEM)
            for file, content in ((folder / f"{name}.pem", public), (folder / f"{name}.key", secret)):
                with _new(file) as opened:
                    begun.append(file)
                    opened.write(content)
    except OSError as fault:
        for file in begun:
            with suppress(OSError):
                file.unlink()
        kind = RecordError if fault.errno in FULL else UsageError
        raise kind(f"cannot write {folder}: {reason_of(fault)}", hint="another folder") from None
    return tuple(files)


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Certificate | None,
    issuer_key: ec.EllipticCurvePrivateKey,
) -> x509.Certificate:
    """Return a certificate; without an issuer that of the authority, which signs itself."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"loadlens fleet {name}")])
    is_authority = issuer is None
    now = datetime.now(UTC)
    issuer_public = issuer_key.public_key()
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + VALID)
        .add_extension(x509.BasicConstraints(is_authority, 0 if is_authority else None), critical=True)
        .add_extension(_usage(is_authority), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_public), critical=False)
    )
    if not is_authority:  # every party of a Dask cluster connects and is connected to
        both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(x509.ExtendedKeyUsage(both), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _usage(is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _new(path: Path) -> BinaryIO:
    """Open a new file for its owner alone; an OSError when one is there."""
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
