//! Accepts connections: TCP and Unix sockets, TLS, limits, drain; the twin of transport.
