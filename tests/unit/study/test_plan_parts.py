"""Services of a study that are no plain processes: what fits which kind, settings, limits, variants."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from loadlens.errors import DefinitionErrors, UsageError
from loadlens.model.topology import Limits, Service
from loadlens.model.workload import PemFile, Tls
from loadlens.study import parse, plan
from tests.secured import FOLDER, pem

HEAD = """\
schema: 1
study: parts
question: do they fit?
params: {share: 0.25, who: least-connections}
entry: api
scenarios:
  look: [{get: /}]
experiments:
  only: {mix: look, load: {users: 1, duration: 9s}}
services:
  api: {start: "serve --port $port $share $who"}
"""


def services(tmp_path: Path, text: str, **options: object) -> dict[str, Service]:
    (tmp_path / "study.yaml").write_text(HEAD + text)
    study = plan.plan(parse.read(tmp_path), **options)  # type: ignore[arg-type]
    return {service.name: service for service in study.cases[0].services}


def faults(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(DefinitionErrors) as raised:
        services(tmp_path, text)
    return [error.message for error in raised.value.faults]


def test_limits_are_in_cores_seconds_and_bytes(tmp_path: Path) -> None:
    made = services(
        tmp_path, "  lim: {start: x, limits: {cpu: $share, period: 20ms, memory: 64MiB, cpus: [0, 2-3]}}\n"
    )

    assert made["lim"].limits == Limits(cpu=0.25, period_s=0.02, memory_bytes=64 * 2**20, cpus=(0, 2, 3))
    assert made["api"].limits == Limits()


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ("{cpu: 0}", "wanted a number of cores above 0, got 0"),
        ("{cpus: 3-1}", "'3-1' is no number of a CPU"),
        ("{cpus: [1, 1]}", "a set of CPUs names each once, and at least one"),
        ("{memory: 12}", "12 is less than any process needs"),
        ("{period: 5ms}", "a period without a share of CPU time"),
    ],
)
def test_limits_that_cannot_be_held_are_refused(tmp_path: Path, limits: str, words: str) -> None:
    assert faults(tmp_path, f"  lim: {{start: x, limits: {limits}}}\n") == [words]


def test_a_balancer_has_its_backends_policy_and_settings(tmp_path: Path) -> None:
    balancer = services(
        tmp_path, "  lb: {use: nginx, over: api, policy: $who, settings: {keepalive: 0, log: off}}\n"
    )["lb"]

    assert (balancer.over, balancer.policy) == (("api",), "least-connections")
    assert [balancer.setting(name) for name in ("keepalive", "log", "workers")] == ["0", "off", "1"]


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("{use: nginx}", "service x stands before nothing"),
        ("{use: nginx, over: api, start: nginx}", "service x: start means nothing to use: nginx"),
        ("{use: nginx, over: api, settings: {keepalives: 3}}", "nginx has no setting 'keepalives' here"),
        ("{use: nginx, over: api, settings: {keepalive: '3; x'}}", "setting keepalive cannot be '3; x'"),
        ("{use: nginx, over: api, replicas: 2}", "service x: there is one nginx"),
        ("{use: postgres, policy: ip-hash}", "service x: policy means nothing to use: postgres"),
        ("{env: {A: 1}}", "service x without start"),
        ("{start: y, settings: {a: 1}}", "service x: settings means nothing to use: process"),
    ],
)
def test_keys_that_mean_nothing_to_a_kind_of_part_are_refused(tmp_path: Path, part: str, words: str) -> None:
    assert faults(tmp_path, f"  x: {part}\n") == [words]


VARIANTS = """\
  two:
    env: {MODE: plain}
    variants:
      real: {start: real --port $port, needs: [real-runtime]}
      small: {start: small --port $port, env: {MODE: small}}
"""


def test_the_first_variant_that_the_machine_can_run_is_taken(tmp_path: Path) -> None:
    rich = services(tmp_path, VARIANTS, has_program=lambda _: True)["two"]
    poor = services(tmp_path, VARIANTS, has_program=lambda _: False)["two"]

    assert (rich.variant, rich.start, rich.env) == ("real", "real --port $port", (("MODE", "plain"),))
    assert (poor.variant, poor.start, poor.env) == ("small", "small --port $port", (("MODE", "small"),))


def test_a_variant_that_is_asked_for_is_taken_even_if_it_cannot_run_here(tmp_path: Path) -> None:
    made = services(tmp_path, VARIANTS, variants={"two": "real"}, has_program=lambda _: False)["two"]

    assert (made.variant, made.needs) == ("real", ("real-runtime",))  # which is then named as missing


def test_a_variant_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="service two has no variant 'big'") as raised:
        services(tmp_path, VARIANTS, variants={"two": "big"})

    assert raised.value.hint == "known: real, small"


def test_backends_that_are_not_there_are_named(tmp_path: Path) -> None:
    assert "'apy' is no service" in faults(tmp_path, "  lb: {use: nginx, over: apy}\n")[0]


def cases(tmp_path: Path, services: str, entry: str = "$front") -> dict[str, tuple[str | None, list[str]]]:
    text = HEAD.replace("entry: api", f"entry: {entry}").replace(
        "load: {users: 1, duration: 9s}}",
        "load: {users: 1, duration: 9s}, factors: {way: {direct: {front: api, balanced: false}, "
        "through: {front: lb, balanced: true}}}}",
    )
    (tmp_path / "study.yaml").write_text(text + services)
    study = plan.plan(parse.read(tmp_path))
    return {
        case.name: (case.entry.service, [service.name for service in case.services]) for case in study.cases
    }


def test_a_case_has_only_the_services_that_it_wants(tmp_path: Path) -> None:
    assert cases(tmp_path, "  lb: {use: nginx, over: api, when: $balanced}\n") == {
        "only way=direct": ("api", ["api"]),
        "only way=through": ("lb", ["api", "lb"]),
    }


def test_an_entry_or_a_neighbour_that_the_case_does_not_have_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(DefinitionErrors) as no_entry:
        cases(tmp_path, "  lb: {use: nginx, over: api, when: $balanced}\n", entry="lb")
    with pytest.raises(DefinitionErrors) as no_backend:
        cases(tmp_path, "  b: {start: x, when: $balanced}\n  lb: {use: nginx, over: b}\n")

    assert "entry 'lb' is no service" in str(no_entry.value)
    assert "service lb needs b, which this case does not have" in str(no_backend.value)


def test_a_window_beyond_the_measured_part_is_a_fault(tmp_path: Path) -> None:
    text = STUDY_WITH_METRICS + "  window: {from: 5s, to: 25s}\n"
    (tmp_path / "study.yaml").write_text(text)

    with pytest.raises(DefinitionErrors, match="the window reaches 25 s, but one measures 20 s"):
        plan.plan(parse.read(tmp_path))


@pytest.mark.parametrize(
    ("services", "message"),
    [
        ("  api: {start: serve}\n", "no service of the study has metrics"),
        ("  api: {start: serve, scrape: {}}\n", "topk() is answered by a Prometheus server only"),
        ("  api: {start: serve}\n  prom: {use: prometheus}\n", "service prom has nothing to scrape"),
        ("  api: {start: serve}\n  prom: {use: prometheus, over: api}\n", "api has no metrics to scrape"),
        ("  api: {start: serve, scrape: {}}\n  prom: {use: prometheus}\n", None),
    ],
)
def test_an_expression_that_nobody_could_answer_is_a_fault(
    tmp_path: Path, services: str, message: str | None
) -> None:
    text = STUDY_WITH_METRICS.replace("  api: {start: serve, scrape: {}}\n", services)
    (tmp_path / "study.yaml").write_text(text + "  promql: {top: 'topk(1, a)'}\n")

    if message is None:
        planned = plan.plan(parse.read(tmp_path))
        assert planned.cases[0].services[1].over == ("api",)
        return
    with pytest.raises(DefinitionErrors) as raised:
        plan.plan(parse.read(tmp_path))
    assert any(fault.message == message for fault in raised.value.faults)


def test_what_a_query_takes_follows_from_its_expression(tmp_path: Path) -> None:
    text = STUDY_WITH_METRICS + "  promql: {all: 'increase(a[$__range])', now: 'rate(a[2s])'}\n"
    (tmp_path / "study.yaml").write_text(text)

    planned = plan.plan(parse.read(tmp_path)).report.promql

    assert [(query.name, query.take, query.step_s) for query in planned] == [
        ("all", "last", 1.0),
        ("now", "mean", 1.0),
    ]


STUDY_WITH_METRICS = """\
schema: 1
study: metrics
question: what?
services:
  api: {start: serve, scrape: {}}
entry: api
scenarios: {look: [{get: /}]}
experiments: {one: {mix: look, load: {users: 1, duration: 20s}}}
report:
"""


# --- what is asked over TLS --------------------------------------------------------------------------------

SECURED = """\
schema: 1
study: parts
question: are they asked as the load asks?
entry: api.https
tls: {ca: ca.pem, servername: api.test}
scenarios:
  look: [{get: /}]
experiments:
  only: {mix: look, load: {users: 1, duration: 9s}}
services:
"""


def secured(tmp_path: Path, text: str, head: str = SECURED) -> dict[str, Service]:
    shutil.copy(FOLDER / "ca.pem", tmp_path)
    shutil.copy(FOLDER / "client.pem", tmp_path)
    (tmp_path / "study.yaml").write_text(head + text)
    return {service.name: service for service in plan.plan(parse.read(tmp_path)).cases[0].services}


def test_only_the_port_of_the_entry_is_asked_over_tls(tmp_path: Path) -> None:
    made = secured(
        tmp_path,
        """\
  api: {start: x, ports: [https, admin], ready: {get: /}, scrape: {port: admin}}
  other: {start: x, ports: [https], ready: {get: /}, scrape: {}}
""",
    )

    of_the_load = Tls(server_name="api.test", ca=PemFile(str(tmp_path / "ca.pem"), pem("ca").digest))
    asked = [(service.ready, service.scrape) for service in made.values()]
    assert [(ready and ready.tls, scrape and scrape.tls) for ready, scrape in asked] == [
        (of_the_load, None),
        (None, None),
    ]


def test_the_first_port_is_the_one_that_nobody_names(tmp_path: Path) -> None:
    head = SECURED.replace("entry: api.https", "entry: api")
    api = secured(tmp_path, "  api: {start: x, ready: {get: /}, scrape: {port: http}}\n", head)["api"]

    assert api.ready is not None
    assert api.scrape is not None
    assert api.ready.tls == api.scrape.tls
    assert api.ready.tls is not None


@pytest.mark.parametrize(
    ("services_", "head", "expected"),
    [
        (
            "  api: {start: x}\n  front: {use: nginx, over: api}\n",
            SECURED.replace("api.https", "front"),
            "a nginx speaks no TLS here, and front is the entry | 5 tls",
        ),
        (
            "  api: {start: x, ports: [https], scrape: {}}\n  prom: {use: prometheus}\n",
            SECURED.replace("servername: api.test", "cert: client.pem"),
            "prom scrapes api and can show no client certificate | 5 tls.cert",
        ),
    ],
)
def test_what_cannot_be_done_over_tls_is_refused_with_its_line(
    tmp_path: Path, services_: str, head: str, expected: str
) -> None:
    with pytest.raises(DefinitionErrors) as raised:
        secured(tmp_path, services_, head)

    (fault,) = raised.value.faults
    message, _, place = expected.partition(" | ")
    assert fault.message == message
    assert fault.where is not None
    assert fault.where.endswith(f"study.yaml:{place}")


def test_prometheus_may_scrape_a_port_without_tls(tmp_path: Path) -> None:
    text = "  api: {start: x, ports: [https, plain], scrape: {port: plain}}\n  prom: {use: prometheus}\n"

    made = secured(tmp_path, text, SECURED.replace("servername: api.test", "cert: client.pem"))

    assert made["prom"].over == ("api",)
