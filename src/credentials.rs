//! Passwords and random tokens. Passwords are kept as argon2id hashes with the parameters that OWASP's cheat sheet of
//! password storage names first: 19 MiB, two passes, one lane.

use argon2::password_hash::phc::PasswordHash;
use argon2::{Algorithm, Argon2, Params, PasswordHasher, PasswordVerifier, Version};
use rand::TryRng;
use rand::rngs::SysRng;
use std::sync::LazyLock;
use tokio::sync::Semaphore;

/// Fewest and most characters of a password.
pub const SHORTEST_PASSWORD: usize = 12;
/// Most characters of a password.
pub const LONGEST_PASSWORD: usize = 200;

/// The hash that a password is held against where there is no account, so that both take the same time. No password fits it.
const NOBODY: &str = "$argon2id$v=19$m=19456,t=2,p=1$SWxpYWQgbm9ib2R5IDE$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Hashes that are computed at once: half of the processors stay for everything else.
static HASHING: LazyLock<Semaphore> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(2, |cores| cores.get());
    Semaphore::new((cores / 2).clamp(1, 4))
});

/// Why a password could not be hashed or compared, or a token not drawn. The cause is for the log.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CredentialsError(String);

fn hasher() -> Result<Argon2<'static>, CredentialsError> {
    let params = Params::new(19 * 1024, 2, 1, None);
    let params = params.map_err(|error| CredentialsError(format!("the parameters of argon2: {error}")))?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

/// Does work that takes a processor for a while, when it is its turn.
async fn in_turn<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CredentialsError> + Send + 'static,
) -> Result<T, CredentialsError> {
    let turn = HASHING.acquire().await.map_err(|error| CredentialsError(error.to_string()))?;
    // The turn goes along: whoever leaves before the end does not make room for the next one early.
    let done = tokio::task::spawn_blocking(move || {
        let done = work();
        drop(turn);
        done
    });
    done.await.map_err(|error| CredentialsError(format!("hashing broke off: {error}")))?
}

/// The PHC string of a password, with a random salt.
///
/// # Errors
/// When the operating system gives no randomness.
pub async fn hash(password: String) -> Result<String, CredentialsError> {
    in_turn(move || {
        let hashed = hasher()?.hash_password(password.as_bytes());
        Ok(hashed.map_err(|error| CredentialsError(format!("a password could not be hashed: {error}")))?.to_string())
    })
    .await
}

/// Whether a password fits a PHC string. Without one it fits never, and takes as long.
///
/// # Errors
/// When the string is none.
pub async fn verify(password: String, phc: Option<String>) -> Result<bool, CredentialsError> {
    in_turn(move || {
        let known = phc.is_some();
        let phc = phc.unwrap_or_else(|| NOBODY.to_owned());
        let parsed = PasswordHash::new(&phc);
        let parsed = parsed.map_err(|error| CredentialsError(format!("a stored password is no hash: {error}")))?;
        Ok(hasher()?.verify_password(password.as_bytes(), &parsed).is_ok() && known)
    })
    .await
}

/// A sentence that says what to change about a password that somebody chose for themselves.
pub fn password_problem(password: &str, name: &str) -> Option<&'static str> {
    let length = password.chars().count();
    if length < SHORTEST_PASSWORD {
        Some("Choose a password of 12 characters or more; a few words in a row are easy to remember.")
    } else if length > LONGEST_PASSWORD {
        Some("The password has more than 200 characters; choose a shorter one.")
    } else if password.trim().to_lowercase() == name.trim().to_lowercase() {
        Some("The password is the name; choose another one.")
    } else if password.chars().skip(1).zip(password.chars()).all(|(a, b)| a == b) {
        Some("The password is one character again and again; choose another one.")
    } else {
        None
    }
}

fn random<const N: usize>() -> Result<[u8; N], CredentialsError> {
    let mut bytes = [0; N];
    SysRng.try_fill_bytes(&mut bytes).map_err(|error| CredentialsError(format!("no randomness: {error}")))?;
    Ok(bytes)
}

/// 128 random bits in hexadecimal digits, for a link or a cookie. A secret must not be reproducible, so it does not come
/// from [`crate::rng`].
///
/// # Errors
/// When the operating system gives no randomness.
pub fn random_token() -> Result<String, CredentialsError> {
    Ok(hex::encode(random::<16>()?))
}

/// A password of 100 random bits, in groups that can be read out.
///
/// # Errors
/// When the operating system gives no randomness.
pub fn random_password() -> Result<String, CredentialsError> {
    // Without letters and digits that look alike.
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let letters: Vec<char> = random::<20>()?.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect();
    Ok(letters.chunks(5).map(|group| group.iter().collect::<String>()).collect::<Vec<_>>().join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_password_fits_its_own_hash_only() {
        let phc = hash("correct horse battery".into()).await.unwrap();
        assert!(phc.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{phc}");
        assert_ne!(phc, hash("correct horse battery".into()).await.unwrap(), "each has a salt of its own");
        assert!(verify("correct horse battery".into(), Some(phc.clone())).await.unwrap());
        assert!(!verify("correct horse".into(), Some(phc)).await.unwrap());
        assert!(verify("x".into(), Some("no hash".into())).await.is_err());
    }

    #[tokio::test]
    async fn nobody_has_a_password_and_costs_as_much() {
        assert!(!verify("anything".into(), None).await.unwrap());
        let nobody = PasswordHash::new(NOBODY).unwrap();
        let somebody = hash("anything at all".into()).await.unwrap();
        let somebody = PasswordHash::new(&somebody).unwrap();
        assert_eq!((nobody.algorithm, &nobody.params), (somebody.algorithm, &somebody.params));
        assert_eq!(nobody.hash.unwrap().as_bytes().len(), somebody.hash.unwrap().as_bytes().len());
    }

    #[test]
    fn weak_passwords_are_told_what_to_change() {
        for weak in ["short", "aaaaaaaaaaaa", "Ada Lovelace", &"long ".repeat(50)] {
            assert!(password_problem(weak, "ada lovelace").is_some(), "{weak}");
        }
        assert_eq!(password_problem("four words in a row", "ada"), None);
        let random = random_password().unwrap();
        assert!(random.len() == 23 && password_problem(&random, "ada").is_none(), "{random}");
        assert_ne!(random_token().unwrap(), random_token().unwrap());
    }
}
