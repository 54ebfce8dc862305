"""VAT numbers as they are written, without asking anybody."""
import re

PATTERNS = {
    "AT": r"U\d{8}",
    "BE": r"[01]\d{9}",
    "DE": r"\d{9}",
    "DK": r"\d{8}",
    "NL": r"\d{9}B\d{2}",
    "PL": r"\d{10}",
}


def split(text):
    """Return country and number; ValueError if it cannot be a VAT number."""
    text = re.sub(r"[\s.\-]", "", text).upper()
    country, number = text[:2], text[2:]
    pattern = PATTERNS.get(country)
    if pattern is None:
        raise ValueError(f"no member state {country!r}")
    if not re.fullmatch(pattern, number):
        raise ValueError(f"not a number of {country}")
    if country == "DE" and not _german_digit_is_right(number):
        raise ValueError("check digit is wrong")
    return country, number


def _german_digit_is_right(number):
    product = 10
    for digit in number[:8]:
        total = (int(digit) + product) % 10 or 10
        product = 2 * total % 11
    return (11 - product) % 10 == int(number[8])
