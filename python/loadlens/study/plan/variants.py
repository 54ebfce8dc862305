"""Chooses the variant of a service: the requested one, or the first that can run on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace

from loadlens.errors import UsageError
from loadlens.study.definition import Definition, ServicePart

HasProgram = Callable[[str], bool]


def with_variants(definition: Definition, chosen: Mapping[str, str], has_program: HasProgram) -> Definition:
    """The definition with one variant of each service, which replaces the service's keys by its own.

    Args:
        definition: As read.
        chosen: Service -> variant, from `--variant`.
        has_program: Whether the machine has a program.

    Raises:
        UsageError: A service that was asked for is not there or has no such variant.
    """
    for service, variant in chosen.items():
        part = definition.services.get(service)
        names = ", ".join(part.variants if part else definition.services) or "none"
        if part is None or variant not in part.variants:
            what = f"service {service} has no variant {variant!r}" if part else f"{service!r} is no service"
            raise UsageError(what, where="--variant", hint=f"known: {names}")
    services = {
        name: _taken(part, chosen.get(name), has_program) if part.variants else part
        for name, part in definition.services.items()
    }
    return replace(definition, services=services)


def _taken(part: ServicePart, chosen: str | None, has_program: HasProgram) -> ServicePart:
    name = chosen or next(
        (name for name, variant in part.variants.items() if _can_run(variant, has_program)),
        next(iter(part.variants)),  # none can: what the first lacks will be named
    )
    variant = part.variants[name]
    own = {
        field.name: value
        for field in fields(variant)
        if field.name != "place" and (value := getattr(variant, field.name)) not in (None, (), {})
    }
    return replace(part, **own, variants={}, variant=name)


def _can_run(variant: ServicePart, has_program: HasProgram) -> bool:
    return all(has_program(str(program.written)) for program in variant.needs)
