# Three images of Loadlens:
#
#   docker build --target core -t loadlens .            hit, wrk, ab, hey, init, check, doctor
#   docker build --target lab -t loadlens:lab .         and all other verbs
#   docker build --target fleet -t loadlens:fleet .     and Dask: nodes of a fleet, and who directs them
#
# With wheels of `make wheel` at hand nothing is compiled: add  --build-context wheel=dist

# The build machine compiles for every platform, so no emulator runs the compiler.
FROM --platform=$BUILDPLATFORM rust:1.95.0-slim-bookworm AS compiler
ARG TARGETARCH
# The image's own toolchain: rust-toolchain.toml also asks for the components that lint.
ENV RUSTUP_TOOLCHAIN=1.95.0
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends make libc6-dev python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN case "$TARGETARCH" in arm64) arch=aarch64 ;; *) arch=x86_64 ;; esac \
    && rustup target add "$arch-unknown-linux-gnu" \
    && python3 -m venv .venv \
    && .venv/bin/pip install --no-cache-dir --no-deps --require-hashes --requirement requirements/wheel.txt \
    && .venv/bin/python tools/wheel.py build --target "$arch-unknown-linux-gnu"

# Only the wheels; `--build-context wheel=dist` puts a folder of this machine in its place.
FROM scratch AS wheel
COPY --from=compiler /src/dist/*.whl /

FROM python:3.13.9-slim-bookworm AS core
ENV PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
# Any user can run it: with --user "$(id -u):$(id -g)" files in a mounted folder belong to their owner.
RUN useradd --uid 10001 --create-home loadlens && mkdir /work && chmod 1777 /work /home/loadlens
ENV HOME=/home/loadlens
RUN --mount=type=bind,from=wheel,target=/wheels \
    --mount=type=bind,source=requirements/run.txt,target=/run.txt \
    grep -oE '^[^ ]+==[^ ]+' /run.txt > /tmp/constraints.txt \
    && pip install --constraint /tmp/constraints.txt /wheels/loadlens-*_"$(uname -m)".whl \
    && rm /tmp/constraints.txt
USER 10001
WORKDIR /work
ENTRYPOINT ["loadlens"]
CMD ["--help"]

FROM core AS lab
USER 0
RUN --mount=type=bind,from=wheel,target=/wheels \
    --mount=type=bind,source=requirements/run.txt,target=/run.txt \
    grep -oE '^[^ ]+==[^ ]+' /run.txt > /tmp/constraints.txt \
    && pip install --constraint /tmp/constraints.txt "$(echo /wheels/loadlens-*_"$(uname -m)".whl)[lab]" \
    && rm /tmp/constraints.txt
USER 10001

FROM lab AS fleet
USER 0
RUN --mount=type=bind,from=wheel,target=/wheels \
    --mount=type=bind,source=requirements/run.txt,target=/run.txt \
    grep -oE '^[^ ]+==[^ ]+' /run.txt > /tmp/constraints.txt \
    && pip install --constraint /tmp/constraints.txt "$(echo /wheels/loadlens-*_"$(uname -m)".whl)[lab,fleet]" \
    && rm /tmp/constraints.txt
USER 10001
