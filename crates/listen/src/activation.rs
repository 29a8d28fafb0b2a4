//! Sockets passed by a service manager (the protocol of sd_listen_fds(3)).

use crate::error::Error;
use crate::listener::Listener;
use crate::sys;

/// The first descriptor passed (`SD_LISTEN_FDS_START`).
const DESCRIPTOR_FIRST: i32 = 3;
/// More sockets than any service has; a larger number is a mistake.
const DESCRIPTORS_MAX: u32 = 64;

/// The sockets a service manager passed to this process, as told by the environment variables
/// `LISTEN_FDS` and `LISTEN_PID`, whose values the caller reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activation {
    descriptors: u32,
}

impl Activation {
    /// Reads the values of `LISTEN_FDS` and `LISTEN_PID` for the process `own_pid`. `None` when
    /// nothing was passed, or it was passed to another process.
    ///
    /// # Errors
    /// [`Error::ActivationNumber`] when a value is not a number, or `LISTEN_FDS` exceeds 64.
    pub fn from_values(
        listen_fds: Option<&str>,
        listen_pid: Option<&str>,
        own_pid: u32,
    ) -> Result<Option<Self>, Error> {
        let (Some(descriptors), Some(pid)) = (listen_fds, listen_pid) else { return Ok(None) };
        let number = |variable, value: &str| {
            let wrong = || Error::ActivationNumber { variable, value: value.to_owned() };
            value.trim().parse::<u32>().map_err(|_| wrong())
        };
        if number("LISTEN_PID", pid)? != own_pid {
            return Ok(None);
        }
        let count = number("LISTEN_FDS", descriptors)?;
        if count > DESCRIPTORS_MAX {
            let value = descriptors.to_owned();
            return Err(Error::ActivationNumber { variable: "LISTEN_FDS", value });
        }
        Ok((count > 0).then_some(Self { descriptors: count }))
    }

    /// How many sockets were passed.
    pub fn sockets(&self) -> u32 {
        self.descriptors
    }

    /// Takes the sockets, in the order the service manager lists them. Within a Tokio runtime.
    ///
    /// # Errors
    /// [`Error::ActivationTaken`] the second time, [`Error::ActivationDescriptor`] when one is
    /// not a listening stream socket.
    pub fn listeners(self) -> Result<Vec<Listener>, Error> {
        let last = DESCRIPTOR_FIRST + self.descriptors.cast_signed() - 1;
        let mut listeners = Vec::new();
        for (descriptor, owned) in sys::take_passed(DESCRIPTOR_FIRST..=last)? {
            let listener = owned
                .and_then(|owned| Listener::from_descriptor(owned).ok())
                .ok_or(Error::ActivationDescriptor { descriptor })?;
            listeners.push(listener);
        }
        Ok(listeners)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_meant_for_this_process_count() {
        let read = |fds, pid| Activation::from_values(fds, pid, 42);
        assert_eq!(read(Some("2"), Some("42")).unwrap().map(|a| a.sockets()), Some(2));
        for (fds, pid) in [
            (None, None),
            (Some("2"), None),
            (None, Some("42")),
            (Some("2"), Some("41")),
            (Some("0"), Some("42")),
        ] {
            assert_eq!(read(fds, pid).unwrap(), None, "{fds:?} {pid:?}");
        }
        for (fds, pid) in [("two", "42"), ("2", "me"), ("65", "42"), ("-1", "42")] {
            assert!(matches!(read(Some(fds), Some(pid)), Err(Error::ActivationNumber { .. })));
        }
    }
}
