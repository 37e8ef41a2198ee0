//! What can wake the runtime, and the signals among it.

use ratatui::crossterm::event::Event;

use super::message::Message;

/// What woke the runtime.
#[derive(Debug)]
pub enum Woken {
    /// Something from the terminal.
    Input(Box<Event>),
    /// The terminal has ended.
    InputEnded,
    /// News.
    Message(Box<Message>),
    /// A frame is due.
    Frame,
    /// A second has passed while an age is on the screen.
    Clock,
    /// A signal that ends us.
    Terminate(i32),
    /// SIGTSTP from outside.
    Suspend,
    /// A panic in another thread.
    Panic,
}

#[cfg(unix)]
mod unix {
    use super::Woken;
    use tokio::signal::unix::{Signal, SignalKind, signal};

    /// The signals we answer.
    #[derive(Debug)]
    pub struct Signals {
        terminate: Signal,
        hangup: Signal,
        interrupt: Signal,
        quit: Signal,
        stop: Signal,
    }

    impl Signals {
        /// Starts listening; from here on none of these ends us by itself.
        ///
        /// # Errors
        /// When a handler cannot be set.
        pub fn listen() -> std::io::Result<Self> {
            Ok(Signals {
                terminate: signal(SignalKind::terminate())?,
                hangup: signal(SignalKind::hangup())?,
                interrupt: signal(SignalKind::interrupt())?,
                quit: signal(SignalKind::quit())?,
                stop: signal(SignalKind::from_raw(signal_hook::consts::SIGTSTP))?,
            })
        }

        /// The next signal.
        pub async fn next(&mut self) -> Woken {
            use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
            tokio::select! {
                _ = self.terminate.recv() => Woken::Terminate(SIGTERM),
                _ = self.hangup.recv() => Woken::Terminate(SIGHUP),
                _ = self.interrupt.recv() => Woken::Terminate(SIGINT),
                _ = self.quit.recv() => Woken::Terminate(SIGQUIT),
                _ = self.stop.recv() => Woken::Suspend,
            }
        }
    }
}

#[cfg(unix)]
pub use unix::Signals;

#[cfg(not(unix))]
mod other {
    use super::Woken;

    /// Only the interrupt key exists here.
    #[derive(Debug)]
    pub struct Signals;

    impl Signals {
        /// Nothing to set up.
        ///
        /// # Errors
        /// Never.
        pub fn listen() -> std::io::Result<Self> {
            Ok(Signals)
        }

        /// Waits for the interrupt key.
        pub async fn next(&mut self) -> Woken {
            match tokio::signal::ctrl_c().await {
                Ok(()) => Woken::Terminate(2),
                Err(_) => std::future::pending().await,
            }
        }
    }
}

#[cfg(not(unix))]
pub use other::Signals;
