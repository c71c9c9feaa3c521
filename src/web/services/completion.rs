//! Codes that tell a platform that somebody has finished.

use crate::store::Study;
use crate::web::error::Result;
use crate::web::extractors::cookie::new_token;

/// Letters and digits that nobody takes for each other.
const ALPHABET: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";

/// The code for somebody who has finished: the platform's, or one of their own.
pub(crate) fn code(study: &Study) -> Result<String> {
    match study.settings.completion.code.as_str() {
        "" => own_code(),
        code => Ok(code.to_owned()),
    }
}

/// A code of eight signs that is nobody else's.
fn own_code() -> Result<String> {
    let token = new_token()?;
    let bytes = hex::decode(token).unwrap_or_default();
    Ok(bytes.iter().take(8).map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_codes_are_readable_and_differ() {
        let codes: std::collections::HashSet<String> = (0..100).map(|_| own_code().unwrap()).collect();
        assert_eq!(codes.len(), 100);
        assert!(codes.iter().all(|code| code.len() == 8 && code.bytes().all(|b| ALPHABET.contains(&b))));
    }
}
