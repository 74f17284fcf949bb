# syntax=docker/dockerfile:1

# The hoplake command in a small image, for servers: docker build -t hoplake .
# It is linked with glibc, whose allocator gives memory back as bounds on memory need it (crates/hoplake-allocator).

FROM rust:1.95-slim-bookworm AS build
# zstd and ring have C in them.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /hoplake
COPY . .
# Features of hoplake-cli; empty for all that the program has by default.
ARG CARGO_FEATURES=""
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/hoplake/target \
    if [ -n "$CARGO_FEATURES" ]; then set -- --no-default-features --features "$CARGO_FEATURES"; fi \
    && cargo build --release --locked -p hoplake-cli "$@" \
    && cp target/release/hoplake /usr/local/bin/hoplake
# Volumes of a new container begin as what is here, with its owner.
RUN mkdir -p /empty/data

# The C library, certificates of authorities and a user: no shell, no packages.
FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /usr/local/bin/hoplake /usr/local/bin/hoplake
COPY --from=build --chown=nonroot:nonroot /empty/data /data
# Local graphs and the cache on the disk; nothing else is written.
WORKDIR /data
# gRPC and HTTP of `hoplake serve --grpc 0.0.0.0:7480 --http 0.0.0.0:7481`.
EXPOSE 7480 7481
ENTRYPOINT ["hoplake"]
CMD ["--help"]
