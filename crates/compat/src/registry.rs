//! The drop-ins. Help, documentation, manual pages and links all read this list.

use crate::bonnie::DROP_IN as BONNIE;
use crate::dd::DROP_IN as DD;
use crate::drop_in::DropIn;
use crate::fio::DROP_IN as FIO;
use crate::hdparm::DROP_IN as HDPARM;
use crate::ioping::DROP_IN as IOPING;
use crate::iops::DROP_IN as IOPS;
use crate::iozone::DROP_IN as IOZONE;
use crate::pg_test_fsync::DROP_IN as PG_TEST_FSYNC;
use crate::pgiosim::DROP_IN as PGIOSIM;
use crate::sysbench::DROP_IN as SYSBENCH;
use crate::zcav::DROP_IN as ZCAV;

static DROP_INS: [&DropIn; 11] = [
    &PG_TEST_FSYNC,
    &IOPING,
    &DD,
    &HDPARM,
    &IOPS,
    &ZCAV,
    &SYSBENCH,
    &BONNIE,
    &PGIOSIM,
    &IOZONE,
    &FIO,
];

/// All drop-ins.
pub fn drop_ins() -> &'static [&'static DropIn] {
    &DROP_INS
}

/// The drop-in of this command name.
pub fn drop_in_named(name: &str) -> Option<&'static DropIn> {
    let mut all = DROP_INS.iter();
    all.find(|drop_in| drop_in.name == name).copied()
}
