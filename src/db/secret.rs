//! Passwords that cannot be printed by accident.

use std::fmt;

/// A password. Neither `Debug` nor `Display` shows it; [`Secret::reveal`] is the one way to its text, and only the
/// connection code calls it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a password.
    pub fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }

    /// The password itself, to hand to the server.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn a_password_is_never_printed() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret} {secret:?} {:?}", Some(&secret)), "(hidden) (hidden) Some((hidden))");
        assert_eq!(secret.reveal(), "hunter2");
    }
}
