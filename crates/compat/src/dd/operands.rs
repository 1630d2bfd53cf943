//! The operands of dd, and how each is handled.

use crate::drop_in::Treatment::{Carried, Ignored, Refused};
use crate::drop_in::{DropInOption, Treatment};

const fn operand(
    name: &'static str,
    value: &'static str,
    help: &'static str,
    treatment: Treatment,
) -> DropInOption {
    DropInOption {
        short: name,
        long: "",
        value,
        help,
        treatment,
    }
}

const CONVERTS: Treatment = Refused("content is not converted; use the real dd");
const ONE_WAY: Treatment = Ignored("a write reads no input");

pub(super) const OPERANDS: &[DropInOption] = &[
    operand(
        "if=",
        "FILE",
        "read this file, or write when it is /dev/zero",
        Carried,
    ),
    operand(
        "of=",
        "FILE",
        "write this file, or read when it is /dev/null",
        Carried,
    ),
    operand("bs=", "BYTES", "bytes of a request (512)", Carried),
    operand("ibs=", "BYTES", "bytes of a read; the same as obs", Carried),
    operand(
        "obs=",
        "BYTES",
        "bytes of a write; the same as ibs",
        Carried,
    ),
    operand("cbs=", "BYTES", "bytes of a record to convert", CONVERTS),
    operand("count=", "N", "end after this many blocks", Carried),
    operand(
        "skip=",
        "N",
        "start reading after this many blocks",
        Carried,
    ),
    operand("iseek=", "N", "the same as skip=", Carried),
    operand(
        "seek=",
        "N",
        "start writing after this many blocks",
        Carried,
    ),
    operand("oseek=", "N", "the same as seek=", Carried),
    operand("status=", "LEVEL", "none, noxfer or progress", Carried),
    operand("conv=fdatasync", "", "sync data before the end", Carried),
    operand(
        "conv=fsync",
        "",
        "sync data and metadata before the end",
        Carried,
    ),
    operand(
        "conv=notrunc",
        "",
        "keep the length of the output, as always here",
        Carried,
    ),
    operand("conv=excl", "", "fail if the output exists", Carried),
    operand(
        "conv=nocreat",
        "",
        "fail if the output does not exist",
        Carried,
    ),
    operand(
        "conv=noerror",
        "",
        "go on after read errors",
        Ignored("errors are counted, and the run ends if there are too many"),
    ),
    operand(
        "conv=sync",
        "",
        "fill short blocks",
        Ignored("all blocks are whole"),
    ),
    operand(
        "conv=sparse",
        "",
        "seek over zeros",
        Refused("the data written here has no zeros; omit it"),
    ),
    operand("conv=ascii", "", "from EBCDIC", CONVERTS),
    operand("conv=ebcdic", "", "to EBCDIC", CONVERTS),
    operand("conv=ibm", "", "to another EBCDIC", CONVERTS),
    operand("conv=block", "", "fill records", CONVERTS),
    operand("conv=unblock", "", "trim records", CONVERTS),
    operand("conv=lcase", "", "to lower case", CONVERTS),
    operand("conv=ucase", "", "to upper case", CONVERTS),
    operand("conv=swab", "", "swap bytes", CONVERTS),
    operand("iflag=direct", "", "read with O_DIRECT", Carried),
    operand(
        "iflag=nocache",
        "",
        "drop the cache of what is read",
        Carried,
    ),
    operand(
        "iflag=fullblock",
        "",
        "read whole blocks, as always here",
        Carried,
    ),
    operand("iflag=count_bytes", "", "count= is in bytes", Carried),
    operand("iflag=skip_bytes", "", "skip= is in bytes", Carried),
    operand(
        "iflag=noatime",
        "",
        "keep the access time, as always here",
        Carried,
    ),
    operand(
        "iflag=dsync",
        "",
        "synchronized data",
        Ignored("does not apply to reads"),
    ),
    operand(
        "iflag=sync",
        "",
        "synchronized metadata",
        Ignored("does not apply to reads"),
    ),
    operand(
        "iflag=nonblock",
        "",
        "do not block",
        Ignored("files and disks always block"),
    ),
    operand(
        "iflag=noctty",
        "",
        "no terminal",
        Ignored("a terminal is no target"),
    ),
    operand(
        "iflag=nofollow",
        "",
        "follow no symlink",
        Refused("name the file itself"),
    ),
    operand(
        "iflag=directory",
        "",
        "only a directory",
        Refused("a directory is not read"),
    ),
    operand("oflag=direct", "", "write with O_DIRECT", Carried),
    operand("oflag=dsync", "", "write with O_DSYNC", Carried),
    operand("oflag=sync", "", "write with O_SYNC", Carried),
    operand(
        "oflag=nocache",
        "",
        "drop the cache of what was written",
        Carried,
    ),
    operand("oflag=seek_bytes", "", "seek= is in bytes", Carried),
    operand(
        "oflag=append",
        "",
        "write at the end of the file",
        Refused("an existing file keeps its length; use seek="),
    ),
    operand("oflag=noatime", "", "keep the access time", Carried),
    operand(
        "oflag=nonblock",
        "",
        "do not block",
        Ignored("files and disks always block"),
    ),
    operand(
        "oflag=noctty",
        "",
        "no terminal",
        Ignored("a terminal is no target"),
    ),
    operand(
        "oflag=nofollow",
        "",
        "follow no symlink",
        Refused("name the file itself"),
    ),
    operand(
        "oflag=directory",
        "",
        "only a directory",
        Refused("a directory is not written"),
    ),
    operand("oflag=fullblock", "", "whole blocks", ONE_WAY),
    operand(
        "oflag=count_bytes",
        "",
        "count= is in bytes",
        Refused("use iflag=count_bytes"),
    ),
    operand(
        "oflag=skip_bytes",
        "",
        "skip= is in bytes",
        Refused("use iflag=skip_bytes"),
    ),
    operand(
        "iflag=seek_bytes",
        "",
        "seek= is in bytes",
        Refused("use oflag=seek_bytes"),
    ),
    operand(
        "iflag=append",
        "",
        "append",
        Refused("applies to the output"),
    ),
    operand("--help", "", "print the usage", Carried),
    operand("--version", "", "print the version", Carried),
];

pub(super) const DIFFERENCES: &[&str] = &[
    "Two forms are supported: if=/dev/zero (or urandom, random) to a file or device, and a file or \
     device to of=/dev/null. Copies are refused.",
    "Written data is incompressible, even with if=/dev/zero, because drives and filesystems that \
     compress would show the rate of zeros.",
    "A new file is created under its name and kept. An existing file is overwritten only with \
     'diskproof as --overwrite dd …', and keeps its length; a device only with --destroy NAME.",
    "Without conv=fsync or conv=fdatasync the rate is that of the page cache, as in dd. The data \
     is written back before the program ends, but this time does not count.",
    "A partial last block is not read or written.",
];
