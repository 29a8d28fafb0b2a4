//! Fetches one URL over the range lane into a file, to measure what the lane costs:
//! `range_get URL CA-FILE TARGET [BLOCK-BYTES]`, under `time` or `perf`.

use std::error::Error;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use trunkline_transport::{
    Connection, Lane, Meter, Origin, OriginSettings, Roots, TlsClient, TlsOptions, connect,
};
use url::Url;

/// Bytes asked for at once unless the command line says otherwise: what fits the second-level
/// cache beside the input buffer. With 1 MiB, writing a file took twice the CPU time.
const BLOCK_BYTES: usize = 256 << 10;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("usage: range_get URL CA-FILE TARGET [BLOCK-BYTES]");
    let url: Url = next()?.parse()?;
    let roots = Roots::Only(vec![PathBuf::from(next()?)]);
    let mut target = File::create(next()?)?;
    let block_bytes = next().map_or(Ok(BLOCK_BYTES), |text| text.parse())?;
    let tls = TlsClient::new(TlsOptions { roots, ..TlsOptions::default() })?;
    let origin = Origin::from_url(&url)?;
    let meter = Arc::new(Meter::default());
    let dialled = connect(&origin, &OriginSettings::new(tls), Lane::Range, &meter).await?;
    let Connection::Range(mut connection) = dialled.connection else {
        return Err("the range lane gave another connection".into());
    };
    let request = http::Request::get(url.as_str()).body(())?;
    let response = connection.send(&request).await?;
    let mut block = vec![0; block_bytes];
    let (mut total, mut reads) = (0_u64, 0_u64);
    loop {
        let received = connection.read(&mut block).await?;
        if received == 0 {
            break;
        }
        target.write_all(&block[..received])?;
        total += received as u64;
        reads += 1;
    }
    writeln!(io::stderr(), "{}: {total} bytes in {reads} reads", response.status())?;
    Ok(())
}
