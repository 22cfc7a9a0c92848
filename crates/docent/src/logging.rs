//! Log lines to stderr, and traces to a collector when one is configured.
//!
//! Invariant: standard output is never written to.

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

/// The variable that names a collector, the same for every program.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// Sends what is left when dropped.
pub struct Traces(Option<SdkTracerProvider>);

impl Drop for Traces {
    fn drop(&mut self) {
        if let Some(provider) = &self.0 {
            let _ = provider.shutdown();
        }
    }
}

/// Starts logging: warnings, more with `--verbose`, requests when serving; `RUST_LOG`
/// chooses others.
pub fn start(output: &Output, serve: Option<&Serve>) -> Traces {
    let default = match (output.verbose, serve) {
        (true, _) => "docent=debug,docent_backends=debug,warn",
        (false, Some(_)) if !output.quiet => "docent=info,docent_backends=warn,error",
        _ => "docent=warn,docent_backends=warn,error",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| default.into());
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match serve.map(|serve| serve.log_format) {
        Some(LogFormat::Json) => lines.json().with_filter(filter).boxed(),
        _ => lines.with_filter(filter).boxed(),
    };
    let provider = serve.and(provider());
    let traced = provider.as_ref().map(|provider| {
        let tracer = provider.tracer("docent");
        tracing_opentelemetry::layer().with_tracer(tracer).with_filter(EnvFilter::new("docent=debug"))
    });
    // A second start, in tests, changes nothing.
    let _ = tracing_subscriber::registry().with(lines).with(traced).try_init();
    Traces(provider)
}

/// The way to the collector; none when there is none.
fn provider() -> Option<SdkTracerProvider> {
    let endpoint = std::env::var(ENDPOINT).ok().filter(|endpoint| !endpoint.trim().is_empty())?;
    let address = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
    let exporter = opentelemetry_otlp::SpanExporter::builder().with_http().with_endpoint(address).build();
    let resource = Resource::builder().with_service_name("docent").build();
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter.ok()?).with_resource(resource);
    Some(provider.build())
}
