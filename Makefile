# make demo   a real study from nothing: environment, build, run, report; at most 5 minutes on two cores
# make test   every test that needs no real seconds, Rust and Python, on all cores
# make test-slow  the others: real services, physics, kills; make test-all  both
# make check  format, lint, words, types, stubs
# make studies  every shipped study in its quick profile: about 8 min on two cores once built
# make bench  cost and truth beside other load generators
# make catalogue  diagnoses services whose flaw is known, and says how often that was right
# make page   builds the page of `loadlens ui` from web/
# make docs   regenerates the reference pages and the drawings
# make site   builds the documentation as a site, into site/
# make lock   pins the Python packages of pyproject.toml again (requirements/)
# make wheel  the wheels and the sdist that users install, into dist/
# make try-wheel  installs a wheel into an empty environment without a compiler, and uses it
# make audit  licences and known vulnerabilities of dependencies, as far as their databases can be reached
# make coverage  lines and branches of the Python package that its fast tests reach
# make collector  an OpenTelemetry Collector for tests of exports, with Go, into target/collector
# make hooks  lints and formats what a commit touches, before it is made
# make size   counts code lines by room

SHELL := /bin/bash
VENV := .venv
PYTHON := $(VENV)/bin/python
# The lock is complete, so pip need not resolve anything; a package with another hash is refused.
LOCKED := $(PYTHON) -m pip install --quiet --no-deps --no-compile --require-hashes --requirement
# One line per phase; what pip and cargo print goes to the log.
PHASE := python3 tools/phase.py $(VENV)/install.log
RUST := $(shell find crates -name '*.rs' -o -name '*.lua' -o -name Cargo.toml 2>/dev/null) Cargo.toml Cargo.lock
# cargo follows rust-toolchain.toml, or the default toolchain where that one is not installed.
DEFAULT_TOOLCHAIN := $(shell bash tools/toolchain.sh)
ifneq ($(DEFAULT_TOOLCHAIN),)
export RUSTUP_TOOLCHAIN := $(DEFAULT_TOOLCHAIN)
endif

# Every test that starts Loadlens would compile its modules again, which takes longer than the rest of the start.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(CURDIR)/$(VENV)/compiled

.PHONY: demo test test-slow test-all check studies bench catalogue page docs site size lock wheel try-wheel audit coverage collector hooks install tools clean

demo: install
	@python3 tools/phase.py $(VENV)/demo.log "the register study, quick: 9 trials" \
		bash -c '$(VENV)/bin/loadlens run studies/register --quick --quiet > $(VENV)/demo.txt'; \
		code=$$?; cat $(VENV)/demo.txt; exit $$code

test: tools
	@$(PYTHON) tools/test.py fast

test-slow: tools
	@$(PYTHON) tools/test.py slow

test-all: tools
	@$(PYTHON) tools/test.py all

check: tools
	@$(PYTHON) tools/check.py

studies: tools
	@$(LOCKED) studies/sso/grafana/requirements.txt
	@$(PYTHON) -m pytest tests/studies/test_sso_dashboard.py
	@$(PYTHON) tools/studies.py

bench: tools
	@$(PYTHON) -m benches

catalogue: tools
	@cargo build --quiet --release -p loadlens-specimen
	@$(PYTHON) -m catalogue
	@$(PYTHON) -m catalogue page

page: tools
	@$(PYTHON) tools/page.py

docs: install
	@$(PYTHON) tools/docs.py
	@$(PYTHON) tools/drawings.py

# Needs no engine. A dead link or anchor is an error; the navigation is made from docs/index.md.
site:
	@test -x $(PYTHON) || python3 -m venv $(VENV)
	@$(LOCKED) requirements/site.txt
	@NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --quiet --strict

# pyproject.toml says what is needed, the lock which versions; `make lock` after a change of pyproject.toml,
# `make lock UPGRADE=--upgrade` for the newest versions.
lock:
	@test -x $(PYTHON) || python3 -m venv $(VENV)
	@$(PYTHON) -m pip install --quiet uv
	@$(PYTHON) tools/lock.py $(UPGRADE)

wheel:
	@test -x $(PYTHON) || python3 -m venv $(VENV)
	@$(LOCKED) requirements/wheel.txt
	@$(PYTHON) tools/wheel.py build

try-wheel: install
	@$(PYTHON) tools/wheel.py try

audit: tools
	@$(PYTHON) -m pip install --quiet pip-audit || true
	@$(PYTHON) tools/audit.py

# The fast tests of the Python package, with the lines and branches that they reach.
coverage: tools
	@$(PYTHON) -m coverage run -m pytest -m "not slow" -p no:cacheprovider
	@$(PYTHON) -m coverage report --sort=cover --skip-covered

collector:
	@cd tools/collector && go build -o ../../target/collector .

hooks: tools
	@$(VENV)/bin/pre-commit install
size:
	@python3 tools/size.py

install: $(VENV)/.installed

# What is downloaded mostly waits: the engine is compiled meanwhile.
tools:
	@$(MAKE) --silent --no-print-directory --jobs 2 $(VENV)/.installed $(VENV)/.developing

$(VENV)/.packages: pyproject.toml requirements/run.txt tools/prerequisites.sh
	@bash tools/prerequisites.sh
	@test -x $(PYTHON) || python3 -m venv $(VENV)
	@$(PHASE) "Python packages, into $(VENV)" $(LOCKED) requirements/run.txt
	@touch $@

# maturin's editable install: Python is used in place, only a change of the Rust side or of the
# dependencies builds anything again.
$(VENV)/.installed: $(VENV)/.packages $(RUST)
	@$(PHASE) "engine: a few minutes the first time" \
		bash -c 'source $(VENV)/bin/activate && maturin develop --release'
	@touch $@

$(VENV)/.developing: $(VENV)/.packages requirements/dev.txt web/package-lock.json
	@$(PHASE) "Python packages for development" $(LOCKED) requirements/dev.txt
	@$(PHASE) "npm packages of the page" env PYTHONPATH=python $(PYTHON) tools/page.py install
	@touch $@

clean:
	rm -rf $(VENV) target python/loadlens/_engine*.so
