//! Copying through the terminal (OSC 52), which also works over SSH. Whether the terminal takes it cannot be known, so
//! the console says "sent", never "copied".

use base64::Engine as _;

/// More than this is not sent: terminals cut or refuse it.
pub const MOST: usize = 74_994;

/// The sequence that puts `text` on the clipboard; wrapped for tmux when inside it.
pub fn sequence(text: &str, in_tmux: bool) -> Option<String> {
    if text.len() > MOST {
        return None;
    }
    let body = base64::engine::general_purpose::STANDARD.encode(text);
    let plain = format!("\x1b]52;c;{body}\x07");
    if !in_tmux {
        return Some(plain);
    }
    Some(format!("\x1bPtmux;{}\x1b\\", plain.replace('\x1b', "\x1b\x1b")))
}

#[cfg(test)]
mod tests {
    use super::sequence;

    #[test]
    fn tmux_passes_it_on() {
        assert_eq!(sequence("hi", false).as_deref(), Some("\x1b]52;c;aGk=\x07"));
        assert_eq!(sequence("hi", true).as_deref(), Some("\x1bPtmux;\x1b\x1b]52;c;aGk=\x07\x1b\\"));
        assert_eq!(sequence(&"x".repeat(80_000), false), None);
    }
}
