//! The terminal is given back as it was: after quitting, an error, a panic, a signal, and while suspended.

use std::cell::Cell;
use std::io::{self, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use tokio::sync::Notify;

/// True while the terminal is ours, from before the first change of its mode.
static OURS: AtomicBool = AtomicBool::new(false);
/// A panic was seen somewhere: nothing may be drawn any more.
static PANICKED: AtomicBool = AtomicBool::new(false);
/// Wakes the runtime after a panic in another thread.
static PANIC_SEEN: Notify = Notify::const_new();
static HOOK: Once = Once::new();

thread_local! {
    /// Set while a caught panic of this thread is nobody's business but its own.
    static CAUGHT_HERE: Cell<bool> = const { Cell::new(false) };
}

/// Gives the terminal back when dropped.
#[derive(Debug)]
pub struct Guard(());

impl Guard {
    /// Takes the terminal: raw mode, alternate screen, bracketed paste, no cursor.
    ///
    /// # Errors
    /// When it is no terminal or does not answer; it is then as it was.
    pub fn take() -> io::Result<Self> {
        chain_panic_hook();
        let guard = Guard(());
        take_again()?;
        Ok(guard)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        give_back();
    }
}

/// Takes the terminal, also after a suspension.
///
/// # Errors
/// When the terminal does not answer.
pub fn take_again() -> io::Result<()> {
    // Before the first change, so that whatever ends us from here on restores it.
    OURS.store(true, Ordering::SeqCst);
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste, Hide)
}

/// Gives the terminal back as it was; does nothing when it is not ours. Errors are not told: there is nobody left to
/// read them, and the terminal may be gone.
pub fn give_back() {
    if OURS.swap(false, Ordering::SeqCst) {
        let mut out = io::stdout();
        let _ = execute!(out, DisableBracketedPaste, LeaveAlternateScreen, Show);
        let _ = out.flush();
        let _ = disable_raw_mode();
    }
}

/// A panic anywhere restores the terminal first and is printed after, so that its words can be read.
fn chain_panic_hook() {
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if CAUGHT_HERE.get() {
                tracing::error!("caught: {info}");
                return;
            }
            PANICKED.store(true, Ordering::SeqCst);
            give_back();
            before(info);
            PANIC_SEEN.notify_one();
        }));
    });
}

/// Runs `work`; a panic in it is returned as words and disturbs nobody else.
///
/// # Errors
/// The panic's message.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    CAUGHT_HERE.set(true);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    CAUGHT_HERE.set(false);
    result.map_err(|payload| {
        let words = payload.downcast_ref::<&str>().map(|s| (*s).to_owned());
        words.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_owned())
    })
}

/// A panic was seen.
pub fn panicked() -> bool {
    PANICKED.load(Ordering::SeqCst)
}

/// Waits until a panic is seen.
pub async fn panic_seen() {
    PANIC_SEEN.notified().await;
}

/// True while the terminal we read from is there: its other end was not closed.
pub fn is_there() -> bool {
    #[cfg(unix)]
    {
        use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
        use std::os::fd::AsFd as _;
        let input = io::stdin();
        let mut asked = [PollFd::new(input.as_fd(), PollFlags::empty())];
        let answered = poll(&mut asked, PollTimeout::ZERO).is_ok();
        let gone = PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL;
        let here = asked.first().and_then(PollFd::revents).is_none_or(|events| !events.intersects(gone));
        answered && here
    }
    #[cfg(not(unix))]
    true
}

/// Stops the process as Ctrl-Z would, and returns when it is continued.
///
/// # Errors
/// When the terminal does not answer afterwards.
pub fn suspend() -> io::Result<()> {
    give_back();
    #[cfg(unix)]
    signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGTSTP)?;
    take_again()
}

/// How the console ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this exit code.
    Code(u8),
    /// By this signal.
    Signal(i32),
}

impl Exit {
    /// Ends the process so that whoever waits for it sees the true reason: a process ended by a signal dies of that
    /// signal. SIGQUIT gives its status only, because a core file of us may hold a password.
    pub fn finish(self) -> std::process::ExitCode {
        match self {
            Exit::Code(code) => std::process::ExitCode::from(code),
            Exit::Signal(signal) => {
                #[cfg(unix)]
                if signal != signal_hook::consts::SIGQUIT {
                    // Returns only when the signal has no default action.
                    let _ = signal_hook::low_level::emulate_default_handler(signal);
                }
                std::process::ExitCode::from(u8::try_from(128 + signal).unwrap_or(1))
            }
        }
    }
}
