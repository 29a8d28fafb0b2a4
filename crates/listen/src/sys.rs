//! The crate's only unsafe code: descriptors that exist because another process says so. There is
//! no safe way to take ownership of a descriptor known by its number alone.
#![allow(unsafe_code)]

use crate::error::Error;
use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use std::ops::RangeInclusive;
use std::os::fd::{BorrowedFd, FromRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

static TAKEN: AtomicBool = AtomicBool::new(false);

/// Takes ownership of descriptors passed at the start of the process, once per process. A number
/// at which nothing is open comes with `None`.
pub(crate) fn take_passed(
    descriptors: RangeInclusive<i32>,
) -> Result<Vec<(i32, Option<OwnedFd>)>, Error> {
    if TAKEN.swap(true, Ordering::SeqCst) {
        return Err(Error::ActivationTaken);
    }
    Ok(descriptors.map(|descriptor| (descriptor, take(descriptor))).collect())
}

fn take(descriptor: i32) -> Option<OwnedFd> {
    // SAFETY: the number is not negative, and the borrow ends before this function does. If
    // nothing is open there, the only call made with it fails with EBADF.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let flags = fcntl_getfd(borrowed).ok()?;
    // As sd_listen_fds does: children are not to inherit it.
    fcntl_setfd(borrowed, flags | FdFlags::CLOEXEC).ok()?;
    // SAFETY: it is open, as just seen. By the protocol of sd_listen_fds(3) it was passed to this
    // process, for whoever takes it first; `TAKEN` makes that us, and nobody twice.
    Some(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
