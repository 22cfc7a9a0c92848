//! What tonic serves: one value that plays all three services.

use std::ops::Deref;
use std::sync::Arc;

use super::stage::Stage;

#[derive(Clone)]
pub(super) struct Service(pub(super) Arc<Stage>);

impl Deref for Service {
    type Target = Stage;

    fn deref(&self) -> &Stage {
        &self.0
    }
}
