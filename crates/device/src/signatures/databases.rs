//! Files of databases and images of virtual disks: what `--overwrite` would destroy. Also found on
//! devices, where some databases live without a filesystem.

use super::image::View;
use super::table::At::{self, Start};
use super::table::{
    Check, Clearing, FormatMark, Role, Row, Table, end, end_of, find_structures, first,
};
use diskproof_model::units::SECTOR_BYTES;

const REDIS: &str = "Redis or Valkey snapshot (RDB)";
const ROCKSDB: &str = "RocksDB or LevelDB table (SST)";
const GDBM: &str = "GDBM database";
const BERKELEY_DB: &str = "Berkeley DB database";
const LMDB: &str = "LMDB database";
const BBOLT: &str = "bbolt database (etcd)";
const ASM_COPY: &str = "second header of an Oracle ASM disk";
const ESE: &str = "ESE database (EDB)";
const WIREDTIGER: &str = "WiredTiger (MongoDB) data file";
const PARALLELS: &str = "virtual disk image (Parallels)";
const VHD: &str = "virtual disk image (VHD)";
const INNODB: &str = "InnoDB (MySQL, MariaDB) tablespace";
const REDIS_AOF: &str = "Redis or Valkey append-only file (AOF)";

/// The last bytes of a file, whatever its size.
const fn last(bytes: u64) -> At {
    end_of(1, bytes, 0)
}

const MAGICS: &[Row] = &[
    (ASM_COPY, Start(0x1f_e000 + 32), b"ORCLDISK"),
    ("Oracle data file", Start(28), b"\x7d\x7c\x7b\x7a"),
    ("Oracle data file", Start(28), b"\x7a\x7b\x7c\x7d"),
    ("SQLite database", Start(0), b"SQLite format 3\0"),
    // `TDB_MAGIC_FOOD` of Samba's lib/tdb/common/tdb_private.h; ldb files are TDB, too.
    ("TDB database (Samba, CUPS, LDB)", Start(0), b"TDB file\n"),
    // `GDBM_OMAGIC` and its successors (GDBM's gdbmconst.h), in both byte orders.
    (GDBM, Start(0), &0x1357_9ace_u32.to_le_bytes()),
    (GDBM, Start(0), &0x1357_9acd_u32.to_le_bytes()),
    (GDBM, Start(0), &0x1357_9acf_u32.to_le_bytes()),
    (GDBM, Start(0), &0x1357_9ad0_u32.to_le_bytes()),
    (GDBM, Start(0), &0x1357_9ad1_u32.to_le_bytes()),
    // `DB_BTREEMAGIC`, `DB_HASHMAGIC`, `DB_QAMMAGIC` and `DB_HEAPMAGIC` of Berkeley DB's db.h,
    // behind the header of a page.
    (BERKELEY_DB, Start(12), &0x0005_3162_u32.to_le_bytes()),
    (BERKELEY_DB, Start(12), &0x0006_1561_u32.to_le_bytes()),
    (BERKELEY_DB, Start(12), &0x0004_2253_u32.to_le_bytes()),
    (BERKELEY_DB, Start(12), &0x0007_4582_u32.to_le_bytes()),
    (BERKELEY_DB, Start(12), &0x0005_3162_u32.to_be_bytes()),
    (BERKELEY_DB, Start(12), &0x0006_1561_u32.to_be_bytes()),
    // [MS-ESE] and mdbtools: Active Directory and Exchange, Access.
    (ESE, Start(4), &0x89ab_cdef_u32.to_le_bytes()),
    ("Access database", Start(4), b"Standard Jet DB"),
    ("Access database", Start(4), b"Standard ACE DB"),
    ("HDF5 file", Start(0), b"\x89HDF\r\n\x1a\n"),
    ("Tokyo Cabinet database", Start(0), b"ToKyO CaBiNeT\n"),
    ("InnoDB redo log", Start(16), b"MySQL "),
    ("InnoDB redo log", Start(16), b"MariaDB "),
    ("InnoDB redo log", Start(16), b"Percona "),
    ("MySQL binary log", Start(0), b"\xfebin"),
    (WIREDTIGER, Start(0), b"\x41\xd8\x01\0\x01\0"),
    ("virtual disk image (qcow)", Start(0), b"QFI\xfb"),
    ("virtual disk image (VMDK)", Start(0), b"KDMV"),
    ("virtual disk image (QED)", Start(0), b"QED\0"),
    ("virtual disk image (VMDK)", Start(0), b"COWD"),
    (PARALLELS, Start(0), b"WithoutFreeSpace"),
    (PARALLELS, Start(0), b"WithouFreSpacExt"),
    ("disk image (DMG)", end(SECTOR_BYTES, 0), b"koly"),
    ("virtual disk image (VDI)", Start(0x40), b"\x7f\x10\xda\xbe"),
    (VHD, Start(0), b"conectix"),
    (VHD, end(SECTOR_BYTES, 0), b"conectix"),
    ("virtual disk image (VHDX)", Start(0), b"vhdxfile"),
    // `rdbSaveRio` of Redis' src/rdb.c: the name, then the version in digits.
    (REDIS, Start(0), b"REDIS0"),
    (REDIS, Start(0), b"VALKEY"),
    // The footer of RocksDB's table/format.cc ends with the magic number of the kind of table:
    // block-based, plain and cuckoo, and what came before the first two; LevelDB's is the third.
    (ROCKSDB, last(8), &0x88e2_41b7_85f4_cff7_u64.to_le_bytes()),
    (ROCKSDB, last(8), &0x8242_2296_63bf_9564_u64.to_le_bytes()),
    (ROCKSDB, last(8), &0xdb47_7524_8b80_fb57_u64.to_le_bytes()),
    (ROCKSDB, last(8), &0x4f34_18eb_7a8f_13b8_u64.to_le_bytes()),
    (ROCKSDB, last(8), &0x9267_89d0_c5f1_7873_u64.to_le_bytes()),
    // `MainHeader::MAGIC_BYTES` behind a checksum (DuckDB's storage/storage_info.cpp).
    ("DuckDB database", Start(8), b"DUCK"),
    // `MDB_MAGIC` of LMDB's mdb.c, behind the header of a page: 16 bytes, 12 with 32-bit pointers.
    // The second meta page is there when the first is torn.
    (LMDB, Start(16), &0xbeef_c0de_u32.to_le_bytes()),
    (LMDB, Start(12), &0xbeef_c0de_u32.to_le_bytes()),
    (LMDB, Start(16), &0xbeef_c0de_u32.to_be_bytes()),
    (LMDB, Start(12), &0xbeef_c0de_u32.to_be_bytes()),
    (LMDB, Start(4096 + 16), &0xbeef_c0de_u32.to_le_bytes()),
    // `magic` of bbolt's internal/common/types.go behind the header of a page, in two meta pages.
    (BBOLT, Start(16), &0xed0c_daed_u32.to_le_bytes()),
    (BBOLT, Start(16), &0xed0c_daed_u32.to_be_bytes()),
    (BBOLT, Start(4096 + 16), &0xed0c_daed_u32.to_le_bytes()),
];

const CHECKS: [Check; 4] = [
    ("PostgreSQL data pages", postgres_page, Clearing::Zeros),
    ("PostgreSQL write-ahead log", postgres_wal, Clearing::Zeros),
    (INNODB, innodb, Clearing::Zeros),
    (REDIS_AOF, redis_commands, Clearing::Zeros),
];

pub(super) const TABLE: Table = Table::new(MAGICS, Clearing::Zeros, Role::Content);

/// Every structure that is there.
pub(super) fn find(view: &View<'_, '_>) -> Vec<FormatMark> {
    find_structures(view, &CHECKS, Role::Content)
}

/// `PageHeaderData` of PostgreSQL's storage/bufpage.h: pointers in order, size and layout version
/// in one number.
fn postgres_page(view: &View<'_, '_>) -> Option<u64> {
    first([0], |at| {
        let (flags, lower, upper) = (
            view.le16(at + 10)?,
            view.le16(at + 12)?,
            view.le16(at + 14)?,
        );
        let (special, size_and_version) = (view.le16(at + 16)?, view.le16(at + 18)?);
        let (size, version) = (size_and_version & 0xff00, size_and_version & 0xff);
        let sized =
            size.is_power_of_two() && (1024..=32768).contains(&size) && (1..=4).contains(&version);
        Some(
            sized
                && flags <= 0xf
                && lower >= 20
                && lower <= upper
                && upper <= special
                && special <= size,
        )
    })
}

/// `XLogPageHeaderData` of access/xlog_internal.h: the magic number grows with the versions, 0xD05x
/// of 8.0 to 0xD1xx of 18.
fn postgres_wal(view: &View<'_, '_>) -> Option<u64> {
    first([0], |at| {
        let (magic, info) = (view.le16(at)?, view.le16(at + 2)?);
        let (timeline, address) = (view.le32(at + 4)?, view.le64(at + 8)?);
        Some(
            (0xd050..=0xd1ff).contains(&magic)
                && info <= 0xf
                && timeline > 0
                && timeline < 1 << 24
                && address % 1024 == 0,
        )
    })
}

/// The first page of a tablespace (storage/innobase/include/fil0types.h, fsp0types.h): page 0, of
/// the type "file space header", with the number of the space in the page's header and in that of
/// the space.
fn innodb(view: &View<'_, '_>) -> Option<u64> {
    const FSP_HEADER: u16 = 8;
    first([0], |at| {
        Some(
            view.be32(at + 4)? == 0
                && view.be16(at + 24)? == FSP_HEADER
                && view.be32(at + 34)? == view.be32(at + 38)?,
        )
    })
}

/// Commands as Redis' protocol has them, `*2` and `$6` and `SELECT` in lines; or an annotation with
/// a time before them (`aof-timestamp-enabled`).
fn redis_commands(view: &View<'_, '_>) -> Option<u64> {
    first([0], |at| {
        let head: [u8; 32] = view.array(at)?;
        Some(head.starts_with(b"#TS:") || is_command(&head).is_some())
    })
}

/// A count of words, then the length of the first one.
fn is_command(head: &[u8]) -> Option<()> {
    let rest = after_number(head.strip_prefix(b"*")?)?;
    after_number(rest.strip_prefix(b"$")?).map(|_| ())
}

/// What follows a number and the end of its line.
fn after_number(text: &[u8]) -> Option<&[u8]> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    text.get(digits..)?
        .strip_prefix(b"\r\n")
        .filter(|_| digits > 0)
}
