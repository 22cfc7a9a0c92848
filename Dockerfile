# syntax=docker/dockerfile:1
# One static binary on an image that contains nothing else but certificates.

FROM rust:1.95.0-slim-bookworm AS build
# musl-gcc compiles the C dependencies: SQLite, AWS-LC and SimSIMD. None of them needs cmake or C++.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends musl-tools \
    && rm -rf /var/lib/apt/lists/*
ENV CC_x86_64_unknown_linux_musl=musl-gcc \
    CC_aarch64_unknown_linux_musl=musl-gcc
WORKDIR /src
COPY rust-toolchain.toml .
RUN rustup target add "$(uname -m)-unknown-linux-musl"
COPY . .
ARG TARGETARCH
RUN --mount=type=cache,target=/usr/local/cargo/registry,sharing=locked \
    --mount=type=cache,target=/src/target,sharing=locked \
    target="$(uname -m)-unknown-linux-musl" \
    && cargo build --release --locked --package docent --target "$target" \
    && mkdir -p /out/data \
    && cp "target/$target/release/docent" "/out/docent-$TARGETARCH"

# The release workflow replaces the stage above with finished binaries; no command runs below.
FROM gcr.io/distroless/static-debian13:nonroot
ARG TARGETARCH
LABEL org.opencontainers.image.title="Docent" \
      org.opencontainers.image.description="Docent answers questions from a textbook or a documentation site, with citations." \
      org.opencontainers.image.licenses="Apache-2.0"
COPY LICENSE /LICENSE
COPY --from=build --chmod=0755 /out/docent-${TARGETARCH} /docent
COPY --from=build --chown=65532:65532 /out/data /data
ENV DOCENT_DATA_DIR=/data
USER 65532:65532
WORKDIR /data
VOLUME /data
EXPOSE 8080
# Opens the index without a model and does not contact the server. Orchestrators should probe /readyz.
HEALTHCHECK --interval=30s --timeout=10s --start-period=10s CMD ["/docent", "--quiet", "status"]
ENTRYPOINT ["/docent"]
CMD ["serve", "--listen", "0.0.0.0:8080"]
