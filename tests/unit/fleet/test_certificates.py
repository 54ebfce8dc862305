"""Certificates of a fleet, verified by OpenSSL: each is of the authority, and only the owner reads them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from loadlens.errors import UsageError
from loadlens.fleet import certificates


def verified(folder: Path, name: str, purpose: str) -> bool:
    command = ["openssl", "verify", "-x509_strict", "-purpose", purpose, "-CAfile", str(folder / "ca.pem")]
    return subprocess.run([*command, str(folder / f"{name}.pem")], capture_output=True).returncode == 0


def test_every_party_has_a_certificate_for_both_ends_of_a_connection(tmp_path: Path) -> None:
    certificates.make(tmp_path / "made")

    for name in certificates.PARTIES:
        assert verified(tmp_path / "made", name, "sslserver"), name
        assert verified(tmp_path / "made", name, "sslclient"), name


def test_certificates_of_another_fleet_are_not_trusted(tmp_path: Path) -> None:
    certificates.make(tmp_path / "ours")
    certificates.make(tmp_path / "others")
    (tmp_path / "ours" / "node.pem").write_bytes((tmp_path / "others" / "node.pem").read_bytes())

    assert not verified(tmp_path / "ours", "node", "sslserver")


def test_only_the_owner_reads_them(tmp_path: Path) -> None:
    files = certificates.make(tmp_path / "made")

    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o700
    assert len(files) == 8  # an authority and three parties, two files each


def test_nothing_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "node.key").write_text("mine")

    with pytest.raises(UsageError, match=r"node\.key is there"):
        certificates.make(tmp_path)

    assert [file.name for file in tmp_path.iterdir()] == ["node.key"]
    assert (tmp_path / "node.key").read_text() == "mine"
