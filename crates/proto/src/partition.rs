//! Partition tables: MBR as PCs have it, and GPT (UEFI specification, chapter 5).

use bytes::Buf;
use thiserror::Error;

/// Bytes of a sector on most disks, and in every MBR.
pub const SECTOR_BYTES: u64 = 512;
/// Bytes of a sector on disks with large ones.
pub const SECTOR_BYTES_LARGE: u64 = 4096;

/// Most bytes of a GPT's entries; the usual table has 16 KiB.
const ENTRIES_BYTES_MAX: u64 = 1 << 20;
const GPT_SIGNATURE: &[u8; 8] = b"EFI PART";
const GPT_HEADER_BYTES: usize = 92;
const GPT_ENTRY_BYTES_MIN: u32 = 128;

/// Why a table cannot be used.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TableError {
    /// The image is too short for the table.
    #[error("the image is too short for its partition table")]
    Short,
    /// No MBR signature.
    #[error("the image has no partition table")]
    NoTable,
    /// The GPT is damaged, its copy too.
    #[error("the image's GPT is damaged")]
    Gpt,
}

/// Bytes of the disk that belong to a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionRange {
    /// Offset of its first byte.
    pub start: u64,
    /// Its length in bytes.
    pub size: u64,
}

/// The table of four entries in the first sector; also each link of a chain of logical
/// partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mbr {
    entries: [Option<MbrEntry>; 4],
}

/// One entry of an [`Mbr`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MbrEntry {
    kind: u8,
    first_sector: u32,
    sectors: u32,
}

impl Mbr {
    /// Reads the first sector.
    ///
    /// # Errors
    /// [`TableError::Short`] or [`TableError::NoTable`].
    pub fn parse(sector: &[u8]) -> Result<Self, TableError> {
        let sector = sector.first_chunk::<512>().ok_or(TableError::Short)?;
        if sector[510..] != [0x55, 0xaa] {
            return Err(TableError::NoTable);
        }
        let entry = |number: usize| {
            let mut bytes = &sector[446 + number * 16..][..16];
            bytes.advance(4);
            let kind = bytes.get_u8();
            bytes.advance(3);
            let (first_sector, sectors) = (bytes.get_u32_le(), bytes.get_u32_le());
            let used = kind != 0 && sectors != 0;
            used.then_some(MbrEntry { kind, first_sector, sectors })
        };
        Ok(Self { entries: [entry(0), entry(1), entry(2), entry(3)] })
    }

    /// Whether a GPT holds the real table.
    pub fn is_protective(&self) -> bool {
        self.entries.iter().flatten().any(|entry| entry.kind == 0xee)
    }

    /// The entries in order; unused ones are `None`.
    pub fn entries(&self) -> [Option<MbrEntry>; 4] {
        self.entries
    }
}

impl MbrEntry {
    /// Whether it holds logical partitions.
    pub fn is_extended(&self) -> bool {
        matches!(self.kind, 0x05 | 0x0f | 0x85)
    }

    /// Its bytes. Within a chain, offsets count from a place that depends on the entry's role.
    pub fn range(self) -> PartitionRange {
        PartitionRange {
            start: u64::from(self.first_sector) * SECTOR_BYTES,
            size: u64::from(self.sectors) * SECTOR_BYTES,
        }
    }
}

/// The header of a GPT, its checksum verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpt {
    sector_bytes: u64,
    entries_sector: u64,
    entries: u32,
    entry_bytes: u32,
    entries_crc: u32,
}

impl Gpt {
    /// Reads the header's sector.
    ///
    /// # Errors
    /// [`TableError::Gpt`] when it is none, or damaged.
    pub fn parse(sector: &[u8], sector_bytes: u64) -> Result<Self, TableError> {
        let fixed = sector.get(..GPT_HEADER_BYTES).ok_or(TableError::Gpt)?;
        let field = |at: usize| (&fixed[at..]).get_u32_le();
        let length = field(12) as usize;
        let header = sector.get(..length).filter(|header| header.len() >= GPT_HEADER_BYTES);
        let mut header = header.ok_or(TableError::Gpt)?.to_vec();
        // The checksum is computed with its own field zero.
        header[16..20].fill(0);
        if &fixed[..8] != GPT_SIGNATURE || crc32(&header) != field(16) {
            return Err(TableError::Gpt);
        }
        let gpt = Self {
            sector_bytes,
            entries_sector: (&fixed[72..]).get_u64_le(),
            entries: field(80),
            entry_bytes: field(84),
            entries_crc: field(88),
        };
        let in_bounds = gpt.entry_bytes >= GPT_ENTRY_BYTES_MIN
            && gpt.entries > 0
            && gpt.entries_bytes() <= ENTRIES_BYTES_MAX
            && gpt.entries_sector.checked_mul(sector_bytes).is_some();
        if in_bounds { Ok(gpt) } else { Err(TableError::Gpt) }
    }

    /// Where the entries start, in bytes.
    pub fn entries_at(&self) -> u64 {
        self.entries_sector * self.sector_bytes
    }

    /// Bytes of all entries; bounded.
    pub fn entries_bytes(&self) -> u64 {
        u64::from(self.entries) * u64::from(self.entry_bytes)
    }

    /// Finds partition `number`, from 1, in the entries' bytes.
    ///
    /// # Errors
    /// [`TableError::Gpt`] when the entries are damaged, or the partition ends before it starts.
    pub fn find(&self, entries: &[u8], number: u32) -> Result<Option<PartitionRange>, TableError> {
        if entries.len() as u64 != self.entries_bytes() || crc32(entries) != self.entries_crc {
            return Err(TableError::Gpt);
        }
        let Some(at) = number.checked_sub(1).filter(|at| *at < self.entries) else {
            return Ok(None);
        };
        let entry = &entries[at as usize * self.entry_bytes as usize..];
        if entry[..16].iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let (first, last) = ((&entry[32..]).get_u64_le(), (&entry[40..]).get_u64_le());
        let start = first.checked_mul(self.sector_bytes);
        let end = last.checked_add(1).and_then(|end| end.checked_mul(self.sector_bytes));
        match (start, end) {
            (Some(start), Some(end)) if end > start => {
                Ok(Some(PartitionRange { start, size: end - start }))
            }
            _ => Err(TableError::Gpt),
        }
    }
}

/// CRC-32 as GPT wants it (reflected, polynomial 0x04c11db7). Tables are small.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_checksum_is_the_usual_one() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn an_mbr_lists_its_entries() {
        let mut sector = [0_u8; 512];
        assert_eq!(Mbr::parse(&sector), Err(TableError::NoTable));
        sector[510..].copy_from_slice(&[0x55, 0xaa]);
        sector[446 + 16 + 4] = 0x83;
        sector[446 + 16 + 8..][..8].copy_from_slice(&[0, 8, 0, 0, 2, 0, 0, 0]);
        let mbr = Mbr::parse(&sector).unwrap();
        let [None, Some(second), None, None] = mbr.entries() else { panic!("{mbr:?}") };
        assert_eq!(second.range(), PartitionRange { start: 2048 * 512, size: 1024 });
        assert!(!mbr.is_protective() && !second.is_extended());
    }

    proptest! {
        #[test]
        fn any_sector_is_survived(mut bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = Mbr::parse(&bytes);
            if bytes.len() >= 100 {
                bytes[..8].copy_from_slice(GPT_SIGNATURE);
                bytes[12..16].copy_from_slice(&92_u32.to_le_bytes());
                let mut header = bytes[..92].to_vec();
                header[16..20].fill(0);
                let crc = crc32(&header);
                bytes[16..20].copy_from_slice(&crc.to_le_bytes());
                if let Ok(gpt) = Gpt::parse(&bytes, 512) {
                    prop_assert!(gpt.entries_bytes() <= ENTRIES_BYTES_MAX);
                    let _ = gpt.entries_at();
                }
            }
        }
    }
}
