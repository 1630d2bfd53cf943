//! The drop-ins. Help, documentation, manual pages and links all read this list.

use crate::drop_in::DropIn;
use std::sync::LazyLock;

static DROP_INS: LazyLock<[&DropIn; 11]> = LazyLock::new(|| {
    [
        &crate::pg_test_fsync::DROP_IN,
        &crate::ioping::DROP_IN,
        &crate::dd::DROP_IN,
        &crate::hdparm::DROP_IN,
        &crate::iops::DROP_IN,
        &crate::zcav::DROP_IN,
        &crate::sysbench::DROP_IN,
        &crate::bonnie::DROP_IN,
        &crate::pgiosim::DROP_IN,
        &crate::iozone::DROP_IN,
        &crate::fio::DROP_IN,
    ]
});

/// All drop-ins.
pub fn drop_ins() -> &'static [&'static DropIn] {
    &*DROP_INS
}

/// The drop-in of this command name.
pub fn drop_in_named(name: &str) -> Option<&'static DropIn> {
    let mut all = DROP_INS.iter();
    all.find(|drop_in| drop_in.name == name).copied()
}
