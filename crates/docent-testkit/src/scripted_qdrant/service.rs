//! The value that tonic serves, which implements all three services.

use std::ops::Deref;
use std::sync::Arc;

use super::dispatch::Stage;

#[derive(Clone)]
pub(super) struct Service(pub(super) Arc<Stage>);

impl Deref for Service {
    type Target = Stage;

    fn deref(&self) -> &Stage {
        &self.0
    }
}
