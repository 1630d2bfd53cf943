//! Reads a model from a text: `NAME`, `key=value,…`, or both, as in
//! `momentus-7200.4,stall=5s+1500ms`.

use crate::gallery;
use crate::models::cliff::Cliff;
use crate::models::counterfeit::{Beyond, Counterfeit};
use crate::models::credits::Credits;
use crate::models::direct::DirectAccess;
use crate::models::faults::{FaultDirection, MediaFault};
use crate::models::flash::Flash;
use crate::models::geometry::Geometry;
use crate::models::ragged::Ragged;
use crate::models::rotating::Rotating;
use crate::models::sleep::Sleep;
use crate::models::slow::SlowRange;
use crate::models::stall::Stall;
use crate::models::write_cache::CacheModel;
use crate::models::{Mechanism, Model};
use diskproof_model::units::{parse_duration, parse_size};
use std::ops::Range;

/// The help: every key with its values.
pub const HELP: &str = "\
Keys (SIZE as 4GiB or 100MB, bandwidths per second; TIME as 500us or 2s):
 without moving parts
  iops=N  channels=N  latency=TIME  read-latency=TIME  write-latency=TIME  flush=TIME
  bandwidth=SIZE  read-bandwidth=SIZE  write-bandwidth=SIZE
  cliff=SIZE@SIZE         written bytes before it @ bandwidth behind it
  credits=N@N/N           operations saved @ burst IOPS / baseline IOPS
  byte-credits=SIZE@SIZE/SIZE   bytes saved @ burst / baseline bandwidth
 rotating (rpm first)
  rpm=N  seek=TIME/TIME/TIME (track/average/full)  rate=SIZE/SIZE (outer/inner)
  zones=N  queue=N  buffer=SIZE  overhead=TIME
 any
  stripe=N/SIZE           RAID-0 of N disks as described so far / chunk
  link=SIZE               bandwidth between disk and host
  ragged=SIZE+TIME        width of a cell + the most it loses per MiB
  stall=TIME+TIME         time after the first request + how long
  sleep=TIME+TIME         idle time after which it sleeps + time to wake up
  slow=FROM-TO+TIME       bytes + time lost
  eio=FROM-TO  eio-read=FROM-TO  eio-write=FROM-TO  eio-after=SIZE  enospc-after=SIZE
  short=FROM-TO/SIZE  short-read=FROM-TO/SIZE  short-write=FROM-TO/SIZE
  cache=durable | honest | lying | honest/N% | lying/N% (share of sectors destaged at once)
  wrap=SIZE | drop=SIZE | fail=SIZE | flip=SIZE | thin=SIZE   a counterfeit that holds so much:
                          beyond it addresses wrap, writes are lost, writes fail, bits flip; or
                          it stores any address until so much was written
  cached=SIZE/SIZE        a counterfeit that holds so much / beyond it only the last so much
  direct=accepted | refused-at-open | refused-at-transfer";

/// The reason why a text is no model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// Neither a named disk nor `key=value`.
    #[error("there is no disk named '{name}'; the names are {}", gallery_names())]
    UnknownName {
        /// The name that was written.
        name: String,
    },
    /// A key that no model has.
    #[error("there is no key '{key}'\n{HELP}")]
    UnknownKey {
        /// The key that was written.
        key: String,
    },
    /// The key has no such value.
    #[error("'{value}' is no value for '{key}'\n{HELP}")]
    Value {
        /// The key of the value.
        key: String,
        /// The value that was written.
        value: String,
    },
    /// A key of rotating disks on another, or the other way round.
    #[error(
        "'{key}' does not suit this kind of disk; begin a rotating disk with rpm=, and stripe= \
         only when the disk is complete"
    )]
    Mechanism {
        /// The key that was written.
        key: String,
    },
}

/// Reads a model. The empty text is the unthrottled disk.
pub fn parse(text: &str) -> Result<Model, SpecError> {
    let mut model = Model::default();
    for (index, part) in text
        .split(',')
        .map(str::trim)
        .filter(|p| !p.is_empty())
        .enumerate()
    {
        match part.split_once('=') {
            Some((key, value)) => set_key(&mut model, key, value)?,
            None if index == 0 => {
                let named = gallery::named(part).ok_or_else(|| SpecError::UnknownName {
                    name: part.to_owned(),
                })?;
                model = parse(named.spec)?;
                model.name = part.to_owned();
            }
            None => {
                return Err(SpecError::UnknownKey {
                    key: part.to_owned(),
                });
            }
        }
    }
    if text.contains('=') {
        model.name = text.to_owned();
    }
    Ok(model)
}

/// The names of the gallery, with commas between.
fn gallery_names() -> String {
    gallery::GALLERY.map(|named| named.name).join(", ")
}

/// Sets what a key describes. The functions below return `None` for a value that the key cannot
/// have.
fn set_key(model: &mut Model, key: &str, value: &str) -> Result<(), SpecError> {
    let outcome = match key {
        "iops" | "channels" | "latency" | "read-latency" | "write-latency" | "flush"
        | "bandwidth" | "read-bandwidth" | "write-bandwidth" | "cliff" | "credits"
        | "byte-credits" => match &mut model.mechanism {
            Mechanism::Flash(flash) => set_flash(flash, key, value),
            _ => {
                return Err(SpecError::Mechanism {
                    key: key.to_owned(),
                });
            }
        },
        "rpm" if model.mechanism == Mechanism::Flash(Flash::default()) => small_positive(value)
            .map(|rpm| model.mechanism = Mechanism::Rotating(plain_rotating(rpm))),
        "rpm" | "seek" | "rate" | "zones" | "queue" | "buffer" | "overhead" => {
            match &mut model.mechanism {
                Mechanism::Rotating(disk) => set_rotating(disk, key, value),
                _ => {
                    return Err(SpecError::Mechanism {
                        key: key.to_owned(),
                    });
                }
            }
        }
        "eio" | "eio-read" | "eio-write" | "eio-after" | "enospc-after" | "short"
        | "short-read" | "short-write" => {
            read_fault(key, value).map(|fault| model.faults.push(fault))
        }
        "wrap" | "drop" | "fail" | "flip" | "thin" | "cached" => {
            read_counterfeit(key, value).map(|fake| model.counterfeit = Some(fake))
        }
        "stripe" | "link" | "ragged" | "stall" | "sleep" | "slow" | "cache" | "direct" => {
            set_part_of_any_disk(model, key, value)
        }
        _ => {
            return Err(SpecError::UnknownKey {
                key: key.to_owned(),
            });
        }
    };
    outcome.ok_or_else(|| SpecError::Value {
        key: key.to_owned(),
        value: value.to_owned(),
    })
}

fn set_flash(flash: &mut Flash, key: &str, value: &str) -> Option<()> {
    match key {
        "iops" => flash.iops = Some(positive(value)?),
        "channels" => flash.channels = Some(number_of_parts(value)?),
        "latency" => {
            flash.read_latency_ns = time(value)?;
            flash.write_latency_ns = flash.read_latency_ns;
        }
        "read-latency" => flash.read_latency_ns = time(value)?,
        "write-latency" => flash.write_latency_ns = time(value)?,
        "flush" => flash.flush_latency_ns = time(value)?,
        "bandwidth" => {
            flash.read_bytes_per_s = Some(positive_size(value)?);
            flash.write_bytes_per_s = flash.read_bytes_per_s;
        }
        "read-bandwidth" => flash.read_bytes_per_s = Some(positive_size(value)?),
        "write-bandwidth" => flash.write_bytes_per_s = Some(positive_size(value)?),
        "cliff" => {
            let (after, then) = value.split_once('@')?;
            flash.cliff = Some(Cliff {
                after_bytes: size(after)?,
                bytes_per_s: positive_size(then)?,
            });
        }
        "byte-credits" => {
            let (saved, rates) = value.split_once('@')?;
            let (burst, baseline) = rates.split_once('/')?;
            flash.byte_credits = Some(Credits {
                amount: size(saved)?,
                burst_per_s: positive_size(burst)?,
                baseline_per_s: positive_size(baseline)?,
            });
        }
        "credits" => {
            let (operations, rates) = value.split_once('@')?;
            let (burst, baseline) = rates.split_once('/')?;
            flash.credits = Some(Credits {
                amount: positive(operations)?,
                burst_per_s: positive(burst)?,
                baseline_per_s: positive(baseline)?,
            });
        }
        _ => return None,
    }
    Some(())
}

/// A disk with round numbers, until they are set.
fn plain_rotating(rpm: u32) -> Rotating {
    let geometry = Geometry {
        rpm,
        outer_bytes_per_s: 100_000_000,
        inner_bytes_per_s: 50_000_000,
        zones: 16,
        seek_track_ns: 1_000_000,
        seek_average_ns: 10_000_000,
        seek_full_ns: 20_000_000,
    };
    Rotating {
        geometry,
        overhead_ns: 0,
        queue_depth: 32,
        buffer_bytes: 8 << 20,
    }
}

fn set_rotating(disk: &mut Rotating, key: &str, value: &str) -> Option<()> {
    let geometry = &mut disk.geometry;
    match key {
        "rpm" => geometry.rpm = small_positive(value)?,
        "seek" => {
            let times: Vec<u64> = value.split('/').map(time).collect::<Option<_>>()?;
            let [track, average, full] = times[..] else {
                return None;
            };
            if !(track <= average && average <= full) {
                return None;
            }
            geometry.seek_track_ns = track;
            geometry.seek_average_ns = average;
            geometry.seek_full_ns = full;
        }
        "rate" => {
            let (outer, inner) = value.split_once('/')?;
            geometry.outer_bytes_per_s = positive_size(outer)?;
            geometry.inner_bytes_per_s = positive_size(inner)?;
        }
        "zones" => geometry.zones = number_of_parts(value)?,
        "queue" => disk.queue_depth = small_positive(value)?,
        "buffer" => disk.buffer_bytes = size(value)?,
        "overhead" => disk.overhead_ns = time(value)?,
        _ => return None,
    }
    Some(())
}

fn set_part_of_any_disk(model: &mut Model, key: &str, value: &str) -> Option<()> {
    match key {
        "stripe" => {
            let (count, chunk) = value.split_once('/')?;
            let count: u32 = number_of_parts(count)?;
            let members = vec![model.mechanism.clone(); count as usize];
            model.mechanism = Mechanism::Striped {
                chunk_bytes: size(chunk).filter(|s| *s > 0)?,
                members,
            };
        }
        "link" => model.link_bytes_per_s = Some(positive_size(value)?),
        "ragged" => {
            let (cell, per_mib) = value.split_once('+')?;
            let cell_bytes = size(cell).filter(|s| *s > 0)?;
            model.ragged = Some(Ragged {
                cell_bytes,
                extra_ps_per_byte: time(per_mib)?.checked_mul(1000)? >> 20,
            });
        }
        "stall" => {
            let (after, length) = value.split_once('+')?;
            model.stalls.push(Stall {
                after_ns: time(after)?,
                length_ns: time(length)?,
            });
        }
        "sleep" => {
            let (after, wake) = value.split_once('+')?;
            model.sleep = Some(Sleep {
                after_ns: time(after)?,
                wake_ns: time(wake)?,
            });
        }
        "slow" => {
            let (bytes, extra) = value.split_once('+')?;
            model.slow.push(SlowRange {
                span: span(bytes)?,
                extra_ns: time(extra)?,
            });
        }
        "cache" => model.write_cache = read_write_cache(value)?,
        "direct" => {
            model.direct = match value {
                "accepted" => DirectAccess::Accepted,
                "refused-at-open" => DirectAccess::RefusedAtOpen,
                "refused-at-transfer" => DirectAccess::RefusedAtTransfer,
                _ => return None,
            }
        }
        _ => return None,
    }
    Some(())
}

fn read_counterfeit(key: &str, value: &str) -> Option<Counterfeit> {
    let (real, beyond) = match key {
        "wrap" => (value, Beyond::Wraps),
        "drop" => (value, Beyond::Drops),
        "fail" => (value, Beyond::Fails),
        "flip" => (value, Beyond::Flips),
        "thin" => (value, Beyond::Thin),
        _ => {
            let (real, cache) = value.split_once('/')?;
            let bytes = positive_size(cache)?;
            (real, Beyond::Caches { bytes })
        }
    };
    Some(Counterfeit {
        real_bytes: positive_size(real)?,
        beyond,
    })
}

fn read_fault(key: &str, value: &str) -> Option<MediaFault> {
    let direction = match key {
        "eio-read" | "short-read" => FaultDirection::Read,
        "eio-write" | "short-write" => FaultDirection::Write,
        _ => FaultDirection::Both,
    };
    match key {
        "eio-after" => Some(MediaFault::EioAfter {
            bytes: size(value)?,
        }),
        "enospc-after" => Some(MediaFault::EnospcAfter {
            bytes: size(value)?,
        }),
        "short" | "short-read" | "short-write" => {
            let (bytes, max) = value.split_once('/')?;
            Some(MediaFault::Short {
                span: span(bytes)?,
                direction,
                max_bytes: size(max)?,
            })
        }
        _ => Some(MediaFault::Broken {
            span: span(value)?,
            direction,
        }),
    }
}

fn read_write_cache(value: &str) -> Option<CacheModel> {
    let (kind, share) = value.split_once('/').unwrap_or((value, "0%"));
    let percent: u32 = share
        .strip_suffix('%')?
        .parse()
        .ok()
        .filter(|p| *p <= 100)?;
    let destaged_per_mille = percent * 10;
    match kind {
        "durable" if value == kind => Some(CacheModel::Durable),
        "honest" => Some(CacheModel::Honest { destaged_per_mille }),
        "lying" => Some(CacheModel::Lying { destaged_per_mille }),
        _ => None,
    }
}

fn size(text: &str) -> Option<u64> {
    parse_size(text).ok()
}

/// A size of at least one byte; of a rate, per second.
fn positive_size(text: &str) -> Option<u64> {
    size(text).filter(|bytes| *bytes > 0)
}

fn time(text: &str) -> Option<u64> {
    parse_duration(text).ok()
}

/// A number of at least 1.
fn positive(text: &str) -> Option<u64> {
    text.parse().ok().filter(|n| *n > 0)
}

/// A small number of at least 1.
fn small_positive(text: &str) -> Option<u32> {
    text.parse().ok().filter(|n| *n > 0)
}

/// The most members, zones or channels of a disk: more than any has, and each takes memory.
const PARTS_MAX: u32 = 65_536;

/// A number of parts that the model keeps, at least 1.
fn number_of_parts(text: &str) -> Option<u32> {
    small_positive(text).filter(|count| *count <= PARTS_MAX)
}

/// A range of bytes such as `4KiB-8KiB`, which must not be empty.
fn span(text: &str) -> Option<Range<u64>> {
    let (from, to) = text.split_once('-')?;
    let span = size(from)?..size(to)?;
    if span.is_empty() { None } else { Some(span) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_parts_than_a_disk_has_are_refused() {
        for text in [
            "channels=4000000000",
            "rpm=7200,zones=4000000000",
            "stripe=4000000000/1MiB",
        ] {
            let found = parse(text);
            let is_refused = matches!(found, Err(SpecError::Value { .. }));
            assert!(is_refused, "{text}: {:?}", found.map(|model| model.name));
        }
        parse("channels=65536").unwrap();
    }

    #[test]
    fn spec_keys_build_flash_model() {
        let text = "latency=500us,channels=4,iops=2000,bandwidth=100MB,cliff=2GiB@50MB,\
                    credits=10@20/3,byte-credits=1GiB@100MB/50MB";
        let model = parse(text).unwrap();
        let expected = Flash {
            read_latency_ns: 500_000,
            write_latency_ns: 500_000,
            channels: Some(4),
            iops: Some(2000),
            read_bytes_per_s: Some(100_000_000),
            write_bytes_per_s: Some(100_000_000),
            cliff: Some(Cliff {
                after_bytes: 2 << 30,
                bytes_per_s: 50_000_000,
            }),
            credits: Some(Credits {
                amount: 10,
                burst_per_s: 20,
                baseline_per_s: 3,
            }),
            byte_credits: Some(Credits {
                amount: 1 << 30,
                burst_per_s: 100_000_000,
                baseline_per_s: 50_000_000,
            }),
            ..Flash::default()
        };
        assert_eq!(model.mechanism, Mechanism::Flash(expected));
    }

    #[test]
    fn spec_keys_override_named_model() {
        let model = parse(
            "momentus-7200.4,stall=5s+1500ms,link=78MB,cache=lying/30%,direct=refused-at-open,\
             overhead=1ms",
        )
        .unwrap();
        let [stall] = &model.stalls[..] else {
            panic!("{:?}", model.stalls)
        };
        assert_eq!(
            (stall.after_ns, stall.length_ns),
            (5_000_000_000, 1_500_000_000)
        );
        assert_eq!(model.link_bytes_per_s, Some(78_000_000));
        let destaged_per_mille = 300;
        let lying = CacheModel::Lying { destaged_per_mille };
        assert_eq!(model.write_cache, lying);
        assert_eq!(model.direct, DirectAccess::RefusedAtOpen);
        let Mechanism::Rotating(disk) = model.mechanism else {
            panic!("{:?} is not rotating", model.mechanism);
        };
        assert_eq!((disk.overhead_ns, disk.geometry.rpm), (1_000_000, 7200));
    }

    #[test]
    fn spec_collects_faults() {
        let model = parse(
            "eio=1MiB-2MiB,eio-read=0-512,eio-after=1GB,enospc-after=2GB,short-write=0-1k/512,\
             slow=4k-8k+2ms",
        )
        .unwrap();
        let broken = |span, direction| MediaFault::Broken { span, direction };
        let (bytes, max_bytes) = (1_000_000_000, 512);
        let expected = [
            broken(1 << 20..2 << 20, FaultDirection::Both),
            broken(0..512, FaultDirection::Read),
            MediaFault::EioAfter { bytes },
            MediaFault::EnospcAfter { bytes: 2 * bytes },
            MediaFault::Short {
                span: 0..1024,
                direction: FaultDirection::Write,
                max_bytes,
            },
        ];
        assert_eq!(model.faults, expected);
        let (span, extra_ns) = (4096..8192, 2_000_000);
        assert_eq!(model.slow, [SlowRange { span, extra_ns }]);
    }

    #[test]
    fn spec_refuses_invalid_text_with_reason() {
        let unknown = parse("nosuch").unwrap_err();
        assert!(matches!(unknown, SpecError::UnknownName { .. }));
        assert!(unknown.to_string().contains("momentus-7200.4"));
        let unknown = parse("colour=red").unwrap_err();
        assert!(matches!(unknown, SpecError::UnknownKey { .. }));
        for bad in [
            "iops=0",
            "iops=fast",
            "rpm=7200,seek=1ms/2ms",
            "eio=5-5",
            "cache=durable/3%",
            "cache=honest/101%",
            "rpm=7200,rate=1MB",
            "stall=5s",
        ] {
            let is_value = matches!(parse(bad), Err(SpecError::Value { .. }));
            assert!(is_value, "{bad}: {:?}", parse(bad));
        }
        for bad in ["seek=1ms/2ms/3ms", "rpm=7200,iops=5", "iops=5,rpm=7200"] {
            let is_mixed = matches!(parse(bad), Err(SpecError::Mechanism { .. }));
            assert!(is_mixed, "{bad}: {:?}", parse(bad));
        }
    }

    #[test]
    fn spec_reads_counterfeits() {
        let fake = parse("cached=100MiB/2MiB").unwrap().counterfeit.unwrap();
        let beyond = Beyond::Caches { bytes: 2 << 20 };
        assert_eq!((fake.real_bytes, fake.beyond), (100 << 20, beyond));
        let fake = parse("thin=1GiB").unwrap().counterfeit.unwrap();
        assert_eq!((fake.real_bytes, fake.beyond), (1 << 30, Beyond::Thin));
    }

    #[test]
    fn spec_accepts_every_key_in_help() {
        let keys = HELP
            .split_whitespace()
            .filter_map(|word| word.split_once('='));
        let mut count = 0;
        for (key, _) in keys {
            let parsed = parse(&format!("{key}=?"));
            assert!(
                !matches!(parsed, Err(SpecError::UnknownKey { .. })),
                "{key}"
            );
            count += 1;
        }
        assert!(count > 30, "{count}");
    }
}
