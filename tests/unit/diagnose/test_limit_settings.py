"""Lines that set a number, as engineers write them in several languages, and lines that set another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from loadlens.diagnose.limit_settings import places
from loadlens.model.finding import Finding, Grade, Setting
from loadlens.model.stacks import (
    COMMAND_LINE,
    ENVIRONMENT,
    Frame,
    SettingPlace,
    SourceLine,
    StackSamples,
    ThreadSample,
)

APP = "/srv/shop/orders.py"
EIGHT = Setting.places(8)


def of(setting: Setting | None, grade: Grade = Grade.PROBABLE) -> Finding:
    return Finding("threads.pool-limit", grade, 0.9, "", "", "", (), (), "", "", setting=setting)


def sampled(*settings: SourceLine, seen: Sequence[Frame] = ()) -> StackSamples:
    """Samples of a thread in these frames, with lines that may set a limit."""
    samples = (ThreadSample(1.0, 7, "python3", 7, "t-1", False, "timer", tuple(seen)),)
    return StackSamples(8.0, True, 0.0, 2.0, samples, (), (), cores=0.1, settings=settings)


def named(setting: Setting, *settings: SourceLine, seen: Sequence[Frame] = ()) -> tuple[SettingPlace, ...]:
    return places(sampled(*settings, seen=seen), [of(setting)])


def numbers(setting: Setting, text: str) -> list[str]:
    """The numbers that are named if a line of a file is this one."""
    return [place.number for place in named(setting, SourceLine(APP, 12, text))]


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (5, "pool = ConnectionPool(url, min_size=1, max_size=5)"),  # Python
        (8, "executor = ThreadPoolExecutor(8)"),
        (8, "gate = asyncio.Semaphore(8)"),
        (8, "DESKS = asyncio.Semaphore(value=8)"),
        (8, "connector = aiohttp.TCPConnector(limit=8)"),
        (8, "workers = int(os.environ.get('WORKERS', '8'))"),
        (8, "ExecutorService pool = Executors.newFixedThreadPool(8);"),  # Java
        (8, "config.setMaximumPoolSize(8);"),
        (8, "new ThreadPoolExecutor(8, 8, 60L, TimeUnit.SECONDS, queue)"),
        (8, "private static final int LANES = 8;"),
        (8, "server.tomcat.threads.max=8"),
        (8, '<Connector port="8080" maxThreads="8"/>'),
        (4, "const pool = new Pool({ max: 4, idleTimeoutMillis: 30_000 });"),  # JavaScript
        (4, "  connectionLimit: 4,"),
        (4, "const limit = pLimit(4);"),
        (4, 'const max = parseInt(process.env.POOL_MAX || "4", 10);'),
        (6, "db.SetMaxOpenConns(6)"),  # Go
        (6, "sem := semaphore.NewWeighted(6)"),
        (6, "MaxConnsPerHost: 6,"),
        (6, "const workers = 6"),
        (15, "return config{places: 15, stand: 60 * time.Millisecond}"),
        (8, "let gate = Arc::new(Semaphore::new(8));"),  # Rust
        (8, "const LIMIT: usize = 8;"),
        (10, "      maximum-pool-size: 10"),  # YAML
        (10, "  pool: <%= ENV.fetch('RAILS_MAX_THREADS') { 10 } %>"),  # Ruby
        (10, "  size: ${POOL_SIZE:10}"),
        (8, "config :shop, Shop.Repo, pool_size: 8"),  # Elixir
        (8, "Task.async_stream(items, &fetch/1, max_concurrency: 8, timeout: 5_000)"),
        (8, "private readonly SemaphoreSlim _gate = new(8);"),  # C#
        (8, "Server=db;Database=shop;Maximum Pool Size=8"),
        (8, "pm.max_children = 8"),  # PHP
        (8, "worker_connections 8;"),  # nginx
        (8, 'CMD ["gunicorn", "--workers", "8", "app:app"]'),
        (1000, "max_connections: 1_000"),
        (8, "connect(timeout=2.0, max_size=8)"),  # the time before it is no matter
    ],
)
def test_a_number_behind_its_word_is_the_setting(count: float, text: str) -> None:
    (number,) = numbers(Setting.places(count), text)

    assert float(number.replace("_", "")) == count


@pytest.mark.parametrize(
    "text",
    [
        "permits_per_s: 55",
        "RATE = 55.0",
        "rps: 55",
        "MAX_QPS=55",
        "requests_per_second: 55",
        "RateLimiter.create(55)",
        "limiter := rate.NewLimiter(55, 1)",
        "limiter = AsyncLimiter(55, 1)",
        "return settings{pace: NewPacer(55, 20)}",
        "limit-for-period: 55",
        "PermitLimit = 55,",
        '@limiter.limit("55 per second")',
    ],
)
def test_a_rate_is_found_by_words_for_rates(text: str) -> None:
    assert [float(number) for number in numbers(Setting.rate(55), text)] == [55]


@pytest.mark.parametrize(
    ("setting", "text", "number"),
    [
        (Setting.exactly("backlog", 16), "s.listen(16)", "16"),
        (Setting.exactly("backlog", 16), "server.listen({ port: 8080, backlog: 16 });", "16"),
        (Setting.exactly("backlog", 16), "request_queue_size = 16", "16"),
        (Setting.exactly("files", 64), "LimitNOFILE=64", "64"),
        (Setting.exactly("files", 64), "ulimit -n 64", "64"),
    ],
)
def test_backlogs_and_descriptors_have_words_of_their_own(setting: Setting, text: str, number: str) -> None:
    assert numbers(setting, text) == [number]
    assert numbers(setting, f"workers = {number}") == []


@pytest.mark.parametrize(
    "text",
    [
        "requests.get(url, timeout=0.25)",  # Python
        "TIMEOUT_MS = 250",
        "timeout: 250,",  # JavaScript
        "AbortSignal.timeout(250)",
        "Duration.ofMillis(250)",  # Java
        "readTimeout(250, TimeUnit.MILLISECONDS)",
        "Timeout: 250 * time.Millisecond,",  # Go
        "patience: 250 * time.Millisecond",
        "Duration::from_millis(250)",  # Rust
        "proxy_read_timeout 250ms;",  # nginx
        "GenServer.call(desk, :quote, timeout: 250)",  # Elixir
        "statement_timeout = '0.25s'",
        "timeout=.25",
        "Duration.ofMillis(250L)",
        "Duration::from_millis(250u64)",
        "withTimeout(250.milliseconds)",
        "future.get(250, TimeUnit.MILLISECONDS)",
    ],
)
def test_a_time_out_is_found_in_seconds_and_in_milliseconds(text: str) -> None:
    assert len(numbers(Setting.timeout(0.23, 0.25), text)) == 1
    assert numbers(Setting.timeout(0.4, 0.5), text) == []


@pytest.mark.parametrize(
    "text", ["size: 250", "port = 250", "sleep(3, 250)", "timeout: 2500", "timeout_s: 250s"]
)
def test_other_numbers_are_no_time_out(text: str) -> None:
    assert numbers(Setting.timeout(0.23, 0.25), text) == []


@pytest.mark.parametrize(
    "text",
    [
        "requests.get(url, timeout=30, retries=5)",
        "timeout: 5 min",
        "READ_TIMEOUT = 5 * 60",
        "timeout: 5*time.Minute",
        "timeout = timedelta(minutes=5)",
        "scrape_interval: 5s",
        "keepalive_timeout 5;",
        "within the 5 sections",
    ],
)
def test_times_of_other_things_are_no_time_out(text: str) -> None:
    assert numbers(Setting.timeout(4.8, 5.0), text) == []


@pytest.mark.parametrize(
    "text",
    [
        "proxy_set_header Connection close;",  # nginx
        "keepalive_timeout 0;",
        "proxy_http_version 1.0;",
        '{"connection", "close"},',  # Erlang
        '%{connection: "close"}',
        "headers={'Connection': 'close'}",
        "new https.Agent({ ca, keepAlive: false })",
        "DisableKeepAlives: true,",
        'protocol_version = "HTTP/1.0"',
        "server.keep_alive(false)",
        "max_keepalive_requests = 1",
        "keepalive_timeout 0s;",
        'HeaderName::CONNECTION, HeaderValue::from_static("close")',
        'headers.put("Connection", List.of("close"));',
        "option forceclose",
        "no_keep_alive=True",
    ],
)
def test_a_line_that_closes_connections_is_found_without_a_number(text: str) -> None:
    (place,) = named(Setting.closing(), SourceLine(APP, 12, text))

    assert place.text == "connections may be closed at orders.py:12"


@pytest.mark.parametrize(
    "text",
    [
        "Connection: keep-alive",
        "keepalive_timeout 65;",
        "keepAlive: true",
        "connection.close()",
        "await connection.close();",
        "DisableKeepAlives: false",
        "max_keepalive_requests = 1000",
        "closeable = Connection(url)",
        "no_keep_alive=False",
        "server.keepAliveTimeout = 0",
        "keepalive_timeout 0.5;",
        "socket.setKeepAlive(false)",
        "so_keepalive=off",
        "tcp_keepalive 0",
        "gzip_http_version 1.0;",
        "option httpchk GET /health HTTP/1.0",
    ],
)
def test_lines_that_keep_connections_or_close_others_are_left_out(text: str) -> None:
    assert named(Setting.closing(), SourceLine(APP, 12, text)) == ()


@pytest.mark.parametrize(
    "text", ["workers = 1", "--workers 1", "WEB_CONCURRENCY=1", "worker_processes 1;", "instances: 1"]
)
def test_a_single_process_is_found_by_words_for_processes(text: str) -> None:
    assert numbers(Setting.exactly("processes", 1), text) == ["1"]
    assert numbers(Setting.exactly("processes", 1), "threads = 1") == []


@pytest.mark.parametrize(
    "text",
    [
        "timeout: 8",
        "max_age=8",
        "port: 8",
        "pool_timeout=8",
        "connectTimeoutMillis: 8",
        "max_wait_ms = 8",
        "max_retries=8",
        "pool.interval: 8",
        "max_bytes = 8",
        "pool_version: 8",
        "Timeout: 8 * time.Second",
        "max_wait: 8s",
        "max_wait: 8 ms",
        "max_memory: 8 GB",
        "range(8)",  # no word of a limit
        "8 workers",  # behind the number
        "worker8 = 1",  # part of a name
        "pool: 18",
        "pool: 80",
        "pool: 0.8",
        "pool: 8.5",
        "pool_size = 9  # of 8",
    ],
)
def test_times_and_other_numbers_are_no_setting(text: str) -> None:
    assert numbers(EIGHT, text) == []


def test_only_the_number_that_limits_is_named_of_several() -> None:
    text = "pool = Pool(min_size=2, max_size=8, max_queries=50_000, timeout=8)"

    assert numbers(EIGHT, text) == ["8"]
    assert numbers(Setting.places(50_000), text) == ["50_000"]


@pytest.mark.parametrize(
    ("text", "is_near"), [("max: 7", False), ("max: 8", True), ("max: 9", False), ("max: 8.0", True)]
)
def test_a_mean_of_readings_names_the_number_near_it(text: str, is_near: bool) -> None:
    """7.8 of 8 places are seen to be held: from 7.33 to 8.27 is near."""
    assert bool(numbers(Setting.places(7.8), text)) is is_near


def test_what_was_spoken_and_files_that_threads_were_in_are_nearer_than_others() -> None:
    spoken = (SourceLine(COMMAND_LINE, 0, "--threads 8"), SourceLine(ENVIRONMENT, 0, "WORKERS=8"))
    own, other = SourceLine(APP, 12, "POOL = 8"), SourceLine("/srv/shop/pool.yaml", 2, "size: 8")
    seen = (
        Frame("run", "threading", "/lib/threading.py", 9),
        Frame("order", "orders", APP, 40, is_own=True),
    )

    assert [place.text for place in named(EIGHT, other, *spoken, seen=seen)] == [
        "8 may be set on its command line",
        "8 may be set in its environment",
    ]
    assert named(EIGHT, other, own, *spoken, seen=seen) == ()  # three lines, and any may be it
    assert [place.text for place in named(EIGHT, other, own, seen=seen)] == ["8 may be set at orders.py:12"]
    assert [place.text for place in named(EIGHT, other, seen=seen)] == ["8 may be set at pool.yaml:2"]


def test_a_file_of_a_library_in_which_a_thread_was_is_no_nearer() -> None:
    library = Frame("get", "pool", "/srv/lib/pool.py", 9)
    lines = SourceLine("/srv/lib/pool.py", 9, "SIZE = 8"), SourceLine(APP, 12, "POOL = 8")

    assert len(named(EIGHT, *lines, seen=(library,))) == 2


def test_a_near_line_with_another_number_hides_no_line_further_away() -> None:
    line = SourceLine(APP, 12, "POOL = 8")

    (place,) = named(EIGHT, SourceLine(COMMAND_LINE, 0, "--threads 4"), line)

    assert place == SettingPlace("8", APP, 12, "POOL = 8", "8 may be set at orders.py:12")


@pytest.mark.parametrize(("lines", "count"), [(1, 1), (2, 2), (3, 0)])
def test_more_than_two_lines_of_the_same_nearness_name_none(lines: int, count: int) -> None:
    settings = [SourceLine(APP, number, f"POOL_{number} = 8") for number in range(1, lines + 1)]
    elsewhere = SourceLine("/srv/shop/pool.yaml", 2, "size: 8")  # the only one of its nearness
    seen = (Frame("order", "orders", APP, 40, is_own=True),)

    assert len(named(EIGHT, *settings, elsewhere, seen=seen)) == count


def test_a_finding_below_probable_does_not_count() -> None:
    stacks = sampled(SourceLine(APP, 12, "POOL = 8"), SourceLine(APP, 13, "workers = 5"))
    suspected, probable = of(EIGHT, Grade.SUSPECTED), of(Setting.places(5))

    assert places(stacks, [suspected]) == ()
    assert [place.number for place in places(stacks, [suspected, probable])] == ["5"]


def test_the_numbers_of_the_weightiest_finding_come_first() -> None:
    lines = (
        SourceLine(APP, 12, "POOL = 8"),
        SourceLine(APP, 13, "workers = 5"),
        SourceLine(APP, 14, "LANES = 6"),
    )
    stacks = sampled(*lines, SourceLine(APP, 15, "connections: 9"))
    five, six, nine = Setting.places(5), Setting.places(6), Setting.places(9)

    def numbers_of(*findings: Finding) -> list[str]:
        return [place.number for place in places(stacks, findings)]

    assert numbers_of(of(None, Grade.STRONG), of(EIGHT), of(five)) == ["8", "5"]
    assert numbers_of(of(nine), of(EIGHT), of(nine), of(six), of(five)) == ["9", "8", "6"]
    assert numbers_of(of(Setting.places(7)), of(EIGHT)) == ["8"]
    assert numbers_of(of(None)) == []
    assert numbers_of() == []


def test_without_lines_none_is_named() -> None:
    assert named(EIGHT) == ()


@pytest.mark.parametrize(
    ("first", "second", "shown"),
    [
        ("/srv/shop/settings.py", "/srv/shop/pool.py", ["settings.py:3", "pool.py:3"]),
        ("/srv/shop/settings.py", "/srv/till/settings.py", ["shop/settings.py:3", "till/settings.py:3"]),
        ("/srv/a/web/app.py", "/srv/b/web/app.py", ["a/web/app.py:3", "b/web/app.py:3"]),
        ("/srv/shop/app.py", "/srv/shop/old_app.py", ["app.py:3", "old_app.py:3"]),
        ("/srv/settings.py", "/srv/shop/settings.py", ["srv/settings.py:3", "shop/settings.py:3"]),
        ("/settings.py", "/srv/settings.py", ["/settings.py:3", "srv/settings.py:3"]),
    ],
)
def test_a_file_is_named_by_as_few_of_its_last_parts_as_tell_it_apart(
    first: str, second: str, shown: list[str]
) -> None:
    lines = [SourceLine(file, 3, "POOL = 8") for file in (first, second)]

    assert [place.text for place in named(EIGHT, *lines)] == [f"8 may be set at {name}" for name in shown]


def test_a_file_is_told_apart_from_those_whose_lines_are_not_named() -> None:
    shop, till = SourceLine("/srv/shop/app.py", 3, "POOL = 8"), SourceLine("/srv/till/app.py", 3, "POOL = 5")

    assert [place.text for place in named(EIGHT, shop, till)] == ["8 may be set at shop/app.py:3"]


def test_two_lines_of_one_file_are_named_by_it_alone() -> None:
    lines = [SourceLine(APP, number, "POOL = 8") for number in (3, 9)]

    assert [place.text.split()[-1] for place in named(EIGHT, *lines)] == ["orders.py:3", "orders.py:9"]


def test_a_number_is_named_as_it_stands_there() -> None:
    (place,) = named(Setting.places(1000), SourceLine(COMMAND_LINE, 0, "--max-connections 1_000"))

    assert (place.number, place.file, place.line) == ("1_000", COMMAND_LINE, 0)
    assert place.source == "--max-connections 1_000"


def test_a_rate_that_is_known_within_three_per_cent_is_not_another_one() -> None:
    line = SourceLine(APP, 12, "RATE = 55")

    assert [bool(named(Setting.rate(rate), line)) for rate in (53.0, 54.0, 56.0, 57.0)] == [
        False,  # up to 54.6
        True,
        True,
        False,  # from 55.3
    ]
    assert named(replace(Setting.rate(54.0), kind="backlog"), line) == ()
