//! The results as JSON. Numbers that are not finite become null.

use super::result::Results;

pub fn text(results: &Results) -> Result<String, String> {
    let text = serde_json::to_string_pretty(results).map_err(|error| error.to_string())?;
    Ok(text + "\n")
}
