//! The C interface, declared once more in `src/trunkline.h` of the R package.
//!
//! Rules for the caller: a pointer is used by one thread at a time, freed once, and not used
//! after; bytes of a reply are valid until its job is freed.
#![allow(unsafe_code, reason = "the one place where pointers from C become references")]

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    ptr, slice,
    time::Duration,
};

use crate::{core::Core, job::Job};

/// Starts a core; null when the system has no thread to give.
#[unsafe(no_mangle)]
pub extern "C" fn trunkline_core_new() -> *mut Core {
    let core = catch_unwind(Core::start);
    core.ok().and_then(Result::ok).map_or(ptr::null_mut(), |core| Box::into_raw(Box::new(core)))
}

/// Stops and frees a core; null is nothing.
///
/// # Safety
/// `core` is null, or from [`trunkline_core_new`] and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trunkline_core_free(core: *mut Core) {
    if !core.is_null() {
        // SAFETY: the caller's promise above; ownership comes back from `Box::into_raw`.
        let core = unsafe { Box::from_raw(core) };
        let _ = catch_unwind(AssertUnwindSafe(move || drop(core)));
    }
}

/// Begins a request of `length` bytes; never null.
///
/// # Safety
/// `core` is from [`trunkline_core_new`] and not freed; `request` points to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trunkline_job_new(
    core: *const Core,
    request: *const u8,
    length: usize,
) -> *mut Job {
    // SAFETY: the caller's promise above.
    let (core, request) = unsafe { (&*core, slice::from_raw_parts(request, length)) };
    Box::into_raw(Box::new(core.begin(request)))
}

/// Waits for at most `timeout_ms` milliseconds; 1 when the reply is there, else 0.
///
/// # Safety
/// `job` is from [`trunkline_job_new`] and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trunkline_job_wait(job: *mut Job, timeout_ms: u32) -> i32 {
    // SAFETY: the caller's promise above.
    let job = unsafe { &mut *job };
    i32::from(job.wait(Duration::from_millis(timeout_ms.into())))
}

/// The reply's bytes; its length is stored in `length`.
///
/// # Safety
/// `job` is from [`trunkline_job_new`] and not freed; `length` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trunkline_job_reply(job: *const Job, length: *mut usize) -> *const u8 {
    // SAFETY: the caller's promise above.
    let (job, length) = unsafe { (&*job, &mut *length) };
    *length = job.reply().len();
    job.reply().as_ptr()
}

/// Bytes received and announced so far.
///
/// # Safety
/// `job` is from [`trunkline_job_new`] and not freed; both counts can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trunkline_job_progress(
    job: *const Job,
    received: *mut f64,
    expected: *mut f64,
) {
    // SAFETY: the caller's promise above.
    let (job, received, expected) = unsafe { (&*job, &mut *received, &mut *expected) };
    #[expect(clippy::cast_precision_loss, reason = "for a progress bar")]
    {
        *received = job.progress().received() as f64;
        *expected = job.progress().expected() as f64;
    }
}

/// Frees a job, which stops it if it is under way; null is nothing.
///
/// # Safety
/// `job` is null, or from [`trunkline_job_new`] and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trunkline_job_free(job: *mut Job) {
    if !job.is_null() {
        // SAFETY: the caller's promise above; ownership comes back from `Box::into_raw`.
        let job = unsafe { Box::from_raw(job) };
        let _ = catch_unwind(AssertUnwindSafe(move || drop(job)));
    }
}
