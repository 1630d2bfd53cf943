//! Reads `zonemode=strided`: parts of a file, with gaps between them.

use super::JobReader;
use crate::job_file::error::JobFileError;
use crate::workload::{Order, Rw, RwDirection};
use diskproof_model::shape::ZoneStride;

impl JobReader<'_, '_> {
    /// As in fio, `zonesize` alone means strided zones.
    pub(super) fn zone_stride(&self, rw: Rw) -> Result<Option<ZoneStride>, JobFileError> {
        let zone_bytes = self.count("zonesize", 0)?;
        let Some((setting, _)) = self.value("zonemode")?.or(self.value("zonesize")?) else {
            return Ok(None);
        };
        match self.value("zonemode")? {
            Some((_, "none")) => return Ok(None),
            None if zone_bytes == 0 => return Ok(None),
            None | Some((_, "strided")) => {}
            Some((setting, _)) => {
                return Err(setting.error(
                    "zoned disks (ZBC, ZNS) are not supported; use strided, or the real fio",
                ));
            }
        }
        let range_bytes = self.count("zonerange", zone_bytes)?;
        let is_plain = rw.order == Order::Sequential && rw.direction != RwDirection::Mixed;
        let wrong = match () {
            () if zone_bytes == 0 => "it needs a zonesize",
            () if range_bytes != zone_bytes && range_bytes != 0 => {
                "a zonerange other than zonesize is not supported; remove it"
            }
            () if !is_plain => {
                "strided zones are supported only with read and write; for random requests use \
                 offset and size"
            }
            () => {
                return Ok(Some(ZoneStride {
                    zone_bytes,
                    skip_bytes: self.count("zoneskip", 0)?,
                }));
            }
        };
        Err(setting.error(wrong))
    }
}
