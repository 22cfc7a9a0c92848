//! `docent key`: create an API key and print the configuration for it.

use sha2::{Digest, Sha256};

use crate::cli::Key;
use crate::exit::Failure;
use crate::output::{FAINT, Output};

/// Runs the command. The key is shown once; only its hash goes into the configuration.
pub fn run(arguments: &Key, output: &Output) -> Result<(), Failure> {
    // Two random ids are 244 random bits.
    let key = format!("docent-{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
    let hash = hex::encode(Sha256::digest(key.as_bytes()));
    let rights = if arguments.admin { "admin" } else { "read" };
    if output.json {
        return output.object(&serde_json::json!({
            "name": arguments.name, "key": key, "sha256": hash, "rights": rights
        }));
    }
    output.line(&key)?;
    output.note(format!(
        "{FAINT}save the key above: it is not stored anywhere. Add this to docent.toml:{FAINT:#}\n\n[[serve.keys]]\nname = \"{}\"\nsha256 = \"{hash}\"\nrights = \"{rights}\"",
        arguments.name.replace(['"', '\\'], "")
    ));
    Ok(())
}
