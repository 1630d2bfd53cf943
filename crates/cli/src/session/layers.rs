//! Finds where each layer of a target is read, once its scratch file is written.

use super::run::TargetRun;
use diskproof_device::same_blocks;
use diskproof_engine::RunError;
use diskproof_model::layers::LayersPlan;
use diskproof_model::plan::{CachePolicy, Span};

impl TargetRun {
    /// The span of every target, which holds the same blocks on all of them as far as they can be
    /// found.
    pub(super) fn find_layers(&mut self, plan: &LayersPlan) -> Result<Vec<Span>, RunError> {
        for target in &mut self.targets {
            // Content is compared by what the layers hold, not by what the page cache does.
            target.set_cache(CachePolicy::Direct)?;
        }
        let places = same_blocks(&plan.layers, &self.targets);
        let spans = places.iter().map(|place| Span {
            start_bytes: place.start_bytes,
            length_bytes: Some(place.length_bytes),
        });
        let spans = spans.collect();
        self.results().data.layer_places = places;
        Ok(spans)
    }
}
