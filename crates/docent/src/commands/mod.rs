//! One file per subcommand.

pub mod ingest;
pub mod search;
pub mod status;
pub mod modules;
pub mod doctor;
pub mod eval;
pub mod calibrate;
