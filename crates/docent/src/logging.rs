//! Log lines to stderr, and traces to a collector when one is configured.
//!
//! Invariant: nothing is written to standard output.

mod lines;

use std::io::IsTerminal;

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::WithExportConfig;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use crate::output::Output;
use crate::settings::{LogFormat, Serve};
use lines::Lines;

/// OpenTelemetry's standard variable for the address of a collector.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// Sends the remaining traces and writes the remaining lines when dropped.
pub struct Traces {
    provider: Option<SdkTracerProvider>,
    lines: Lines,
}

impl Drop for Traces {
    fn drop(&mut self) {
        if let Some(provider) = &self.provider
            && let Err(error) = provider.shutdown()
        {
            tracing::warn!(%error, "could not send the last traces");
        }
        self.lines.flush();
    }
}

/// Starts logging: warnings by default, requests when serving, more with `--verbose`; `RUST_LOG`
/// overrides all of it.
pub fn start(output: &Output, serve: Option<&Serve>) -> Traces {
    let default = match (output.verbose, serve) {
        (true, _) => "docent=debug,docent_backends=debug,warn",
        (false, Some(_)) if !output.quiet => "docent=info,docent_backends=warn,error",
        _ => "docent=warn,docent_backends=warn,error",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| default.into());
    let is_json = serve.is_some_and(|serve| serve.log_format == LogFormat::Json);
    let target = if serve.is_some() { Lines::behind(is_json) } else { Lines::at_once() };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(target.clone())
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    let lines: Box<dyn Layer<Registry> + Send + Sync> =
        if is_json { lines.json().with_filter(filter).boxed() } else { lines.with_filter(filter).boxed() };
    let provider = serve.and(provider());
    let traced = provider.as_ref().map(|provider| {
        let tracer = provider.tracer("docent");
        tracing_opentelemetry::layer().with_tracer(tracer).with_filter(EnvFilter::new("docent=debug"))
    });
    // Tests may start logging twice; the second call has no effect.
    let _ = tracing_subscriber::registry().with(lines).with(traced).try_init();
    Traces { provider, lines: target }
}

/// Exports traces to the collector, if one is configured. The exporter sends spans from its own thread, which has no
/// runtime, so the HTTP client is a blocking one.
fn provider() -> Option<SdkTracerProvider> {
    let endpoint = std::env::var(ENDPOINT).ok().filter(|endpoint| !endpoint.trim().is_empty())?;
    let address = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
    let exporter = opentelemetry_otlp::SpanExporter::builder().with_http().with_endpoint(address).build();
    let resource = Resource::builder().with_service_name("docent").build();
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter.ok()?).with_resource(resource);
    Some(provider.build())
}
