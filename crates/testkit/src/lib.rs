//! Scripted origins and fixtures for tests.
