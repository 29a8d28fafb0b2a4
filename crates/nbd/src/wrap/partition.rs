//! One partition of an image, found by its table.

use std::sync::Arc;

use bytes::Bytes;
use thiserror::Error;
use trunkline_proto::partition::{
    Gpt, Mbr, MbrEntry, PartitionRange, SECTOR_BYTES, SECTOR_BYTES_LARGE, TableError,
};

use super::view::{View, ViewError};
use crate::error::Error;
use crate::export::Export;

/// Logical partitions looked at; a longer chain is a loop.
const LOGICAL_MAX: u32 = 256;

/// Why a partition cannot be served.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PartitionError {
    /// The table could not be read.
    #[error(transparent)]
    Read(#[from] Error),
    /// The table is damaged, or there is none.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The table lists no such partition.
    #[error("the image has no partition {0}")]
    Missing(u32),
    /// The table points outside the image.
    #[error("partition {number}: {source}")]
    Outside {
        /// Its number.
        number: u32,
        /// Where it would lie.
        source: ViewError,
    },
}

/// Partition `number` of an image, counted as Linux does: from 1, logical ones from 5.
///
/// # Errors
/// [`PartitionError`] when there is none.
pub async fn partition(image: Arc<dyn Export>, number: u32) -> Result<View, PartitionError> {
    let first = read(&*image, 0, SECTOR_BYTES).await?;
    let mbr = Mbr::parse(&first)?;
    let range = if mbr.is_protective() {
        find_in_gpt(&*image, number).await?
    } else {
        find_in_mbr(&*image, &mbr, number).await?
    };
    let range = range.ok_or(PartitionError::Missing(number))?;
    View::new(image, range.start, Some(range.size))
        .map_err(|source| PartitionError::Outside { number, source })
}

async fn find_in_gpt(
    image: &dyn Export,
    number: u32,
) -> Result<Option<PartitionRange>, PartitionError> {
    let mut failure = TableError::Gpt;
    for sector_bytes in [SECTOR_BYTES, SECTOR_BYTES_LARGE] {
        let last = image.size().saturating_sub(sector_bytes) / sector_bytes * sector_bytes;
        // The copy at the end serves when the table at the start is damaged.
        for at in [sector_bytes, last] {
            let header = match read(image, at, sector_bytes).await {
                Err(PartitionError::Table(_)) => continue,
                header => header?,
            };
            let gpt = match Gpt::parse(&header, sector_bytes) {
                Ok(gpt) => gpt,
                Err(error) => {
                    failure = error;
                    continue;
                }
            };
            let entries = match read(image, gpt.entries_at(), gpt.entries_bytes()).await {
                Err(PartitionError::Table(_)) => continue,
                entries => entries?,
            };
            match gpt.find(&entries, number) {
                Ok(found) => return Ok(found),
                Err(error) => failure = error,
            }
        }
    }
    Err(failure.into())
}

async fn find_in_mbr(
    image: &dyn Export,
    mbr: &Mbr,
    number: u32,
) -> Result<Option<PartitionRange>, PartitionError> {
    if number == 0 {
        return Ok(None);
    }
    if number <= 4 {
        return Ok(mbr.entries()[number as usize - 1].map(MbrEntry::range));
    }
    let Some(extended) = mbr.entries().into_iter().flatten().find(MbrEntry::is_extended) else {
        return Ok(None);
    };
    // Logical partitions are a chain of tables, each with one partition and the next table.
    let home = extended.range().start;
    let mut at = home;
    for logical in 5..5 + LOGICAL_MAX {
        let table = Mbr::parse(&read(image, at, SECTOR_BYTES).await?)?;
        let [partition, next, ..] = table.entries();
        if logical == number {
            return Ok(partition.map(|entry| {
                let PartitionRange { start, size } = entry.range();
                PartitionRange { start: at + start, size }
            }));
        }
        let Some(next) = next.filter(MbrEntry::is_extended) else { return Ok(None) };
        at = home + next.range().start;
    }
    Ok(None)
}

/// Reads a part of the table; one that lies outside the image makes the table unusable.
async fn read(image: &dyn Export, at: u64, length: u64) -> Result<Bytes, PartitionError> {
    match at.checked_add(length) {
        Some(end) if end <= image.size() => {
            Ok(image.read(at, length as u32).await?.into_bytes().await?)
        }
        _ => Err(TableError::Short.into()),
    }
}
