//! One request on one connection: dialling, TLS, proxies, HTTP/1.1 and HTTP/2.
