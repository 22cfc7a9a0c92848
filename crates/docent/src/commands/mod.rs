//! One file per subcommand.

pub mod init;
pub mod ingest;
pub mod export;
pub mod search;
pub mod ask;
pub mod chat;
pub mod quiz;
pub mod sessions;
pub mod status;
pub mod modules;
pub mod doctor;
pub mod eval;
pub mod serve;
pub mod mcp;
pub mod report;
pub mod key;
pub mod calibrate;
pub mod calibrate_verify;
pub mod calibrate_reading;
pub mod printer;
