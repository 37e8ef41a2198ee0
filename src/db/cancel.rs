//! Asking long work to stop: one side asks, the other looks between statements or waits for it beside one.

use tokio::sync::watch;

/// The side that asks.
#[derive(Debug, Clone)]
pub struct Stopper(watch::Sender<bool>);

/// The side that is asked.
#[derive(Debug, Clone)]
pub struct Stop(Option<watch::Receiver<bool>>);

impl Stop {
    /// Both sides.
    pub fn channel() -> (Stopper, Stop) {
        let (sender, receiver) = watch::channel(false);
        (Stopper(sender), Stop(Some(receiver)))
    }

    /// Work that nobody can stop.
    pub fn never() -> Stop {
        Stop(None)
    }

    /// True once somebody asked.
    pub fn asked(&self) -> bool {
        self.0.as_ref().is_some_and(|receiver| *receiver.borrow())
    }

    /// Returns once somebody asks; never when nobody can any more.
    pub async fn wait(&self) {
        if let Some(receiver) = &self.0
            && receiver.clone().wait_for(|asked| *asked).await.is_ok()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}

impl Stopper {
    /// Asks. Asking twice is asking once.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}
