use std::fs;
use std::process::Command;

use tempfile::TempDir;

use super::*;
use crate::tls::fixtures::{Authority, Leaf};

fn write(directory: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = directory.path().join(name);
    fs::write(&path, text).unwrap();
    path
}

/// Runs `openssl` in the directory; `false` when the machine has none.
fn openssl(directory: &TempDir, arguments: &[&str]) -> bool {
    let Ok(output) = Command::new("openssl").args(arguments).current_dir(directory.path()).output()
    else {
        return false;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    true
}

#[test]
fn certificate_and_key_come_from_one_file_or_two() {
    let directory = TempDir::new().unwrap();
    let authority = Authority::new("Clients");
    let leaf = authority.leaf();
    let both = format!("{}{}{}", leaf.key_pem, leaf.certificate_pem, authority.pem());
    let both = write(&directory, "both.pem", &both);
    let identity = Identity::from_pem_files(&both, None).unwrap();
    assert_eq!(identity.certified_key().cert, [leaf.chain[0].clone(), authority.der()]);
    let certificate = write(&directory, "cert.pem", &leaf.certificate_pem);
    let key = write(&directory, "key.pem", &leaf.key_pem);
    let identity = Identity::from_pem_files(&certificate, Some(&key)).unwrap();
    assert_eq!(identity.certified_key().cert, leaf.chain);
}

#[test]
fn the_key_is_never_printed() {
    let directory = TempDir::new().unwrap();
    let leaf = Leaf::self_signed();
    let both = write(&directory, "both.pem", &format!("{}{}", leaf.certificate_pem, leaf.key_pem));
    let shown = format!("{:?}", Identity::from_pem_files(&both, None).unwrap());
    assert!(shown.contains("both.pem") && shown.ends_with(", certificates: 1, .. }"), "{shown}");
}

#[test]
fn errors_name_the_file_at_fault() {
    let directory = TempDir::new().unwrap();
    let leaf = Leaf::self_signed();
    let certificate = write(&directory, "cert.pem", &leaf.certificate_pem);
    let key = write(&directory, "key.pem", &leaf.key_pem);
    let other = write(&directory, "other.pem", &Leaf::self_signed().key_pem);
    let encrypted = write(
        &directory,
        "encrypted.pem",
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
    );
    let read = |certificate: &Path, key| Identity::from_pem_files(certificate, key).unwrap_err();
    assert!(matches!(
        read(&certificate, None),
        TlsSetupError::NoPrivateKey { path } if path == certificate
    ));
    assert!(matches!(read(&key, None), TlsSetupError::NoCertificate { path } if path == key));
    assert!(matches!(
        read(&certificate, Some(&encrypted)),
        TlsSetupError::NoPrivateKey { path } if path == encrypted
    ));
    assert!(matches!(
        read(&certificate, Some(&other)),
        TlsSetupError::KeyMismatch { key, .. } if key == other
    ));
    let missing = directory.path().join("missing.p12");
    let error = Identity::from_pkcs12_file(&missing, &Secret::new("")).unwrap_err();
    assert!(matches!(error, TlsSetupError::Read { path, .. } if path == missing));
}

/// Makes PKCS#12 files by `openssl` with further arguments and reads them back.
fn read_pkcs12(password: &str, arguments: &[&str]) {
    let directory = TempDir::new().unwrap();
    let root = Authority::new("Root");
    let below = root.intermediate("Clients");
    let leaf = below.leaf();
    write(&directory, "leaf.pem", &leaf.certificate_pem);
    write(&directory, "key.pem", &leaf.key_pem);
    // In the wrong order, and with the root, which is not sent.
    write(&directory, "above.pem", &format!("{}{}", root.pem(), below.pem()));
    let pass = format!("pass:{password}");
    let mut command = vec![
        "pkcs12",
        "-export",
        "-in",
        "leaf.pem",
        "-inkey",
        "key.pem",
        "-certfile",
        "above.pem",
        "-out",
        "id.p12",
        "-passout",
        &pass,
    ];
    command.extend_from_slice(arguments);
    if !openssl(&directory, &command) {
        return;
    }
    let path = directory.path().join("id.p12");
    let identity = Identity::from_pkcs12_file(&path, &Secret::new(password)).unwrap();
    assert_eq!(identity.certified_key().cert, [leaf.chain[0].clone(), below.der()]);
    let wrong = Identity::from_pkcs12_file(&path, &Secret::new("wrong")).unwrap_err();
    assert!(matches!(wrong, TlsSetupError::Pkcs12 { .. }), "{wrong:?}");
}

#[test]
fn pkcs12_is_read_with_current_ciphers() {
    read_pkcs12("secret", &[]);
}

#[test]
fn pkcs12_is_read_with_the_empty_password() {
    read_pkcs12("", &[]);
}

#[test]
fn pkcs12_is_read_with_legacy_ciphers() {
    read_pkcs12(
        "secret",
        &["-certpbe", "PBE-SHA1-3DES", "-keypbe", "PBE-SHA1-3DES", "-macalg", "sha1"],
    );
    read_pkcs12("", &["-legacy"]);
}

#[test]
fn pkcs12_without_a_key_says_so() {
    let directory = TempDir::new().unwrap();
    write(&directory, "root.pem", &Authority::new("Root").pem());
    let command =
        ["pkcs12", "-export", "-nokeys", "-in", "root.pem", "-out", "no.p12", "-passout", "pass:"];
    if openssl(&directory, &command) {
        let path = directory.path().join("no.p12");
        let error = Identity::from_pkcs12_file(&path, &Secret::new("")).unwrap_err();
        assert!(matches!(error, TlsSetupError::NoPrivateKey { .. }), "{error:?}");
    }
}
