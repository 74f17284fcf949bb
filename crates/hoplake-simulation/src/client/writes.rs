//! What a change of the bucket means to the oracle.

use std::time::Duration;

use bytes::Bytes;
use hoplake_format::{Slot, constants::manifest_version};

use crate::{
    bucket::{Bucket, Stored},
    location::GraphLocation,
    world::World,
};

/// Writes an object, and lets the oracle look at what that means.
pub(crate) fn write(bucket: &mut Bucket, world: &World, now: Duration, name: &str, bytes: &Bytes) {
    // The caller holds the lock of the bucket, so that the oracle learns of versions in the order in which the store takes them.
    bucket.insert(name.to_owned(), Stored { bytes: bytes.clone(), modified: now });
    let (location, below) = GraphLocation::of(name);
    if let Some(version) = manifest_version(below) {
        world.check(match Slot::decode(bytes) {
            Ok(Slot::Version(manifest)) => {
                world.log(|| format!("{name} is there: {:?}, {}", manifest.change.kind, manifest.change.message));
                world.took(location, *manifest, bucket)
            }
            Ok(Slot::Removed { .. }) => world.history_of(location).removed(version),
            Err(error) => Err(format!("{name} is not a valid manifest: {error}")),
        });
        world.published();
    }
}

/// Removes an object, and lets the oracle look at what that means.
pub(crate) fn remove(bucket: &mut Bucket, world: &World, name: &str) {
    if bucket.remove(name).is_some() {
        world.check(GraphLocation::all().try_for_each(|location| world.history_of(location).deleted(name)));
    }
}
