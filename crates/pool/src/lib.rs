//! Which warm connection carries the next request.
