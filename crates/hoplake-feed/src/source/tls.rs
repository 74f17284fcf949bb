//! TLS in Rust, with ring: for servers whose client crates bring another one, or leave it to their caller.

use std::{
    fmt::Display,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
};

use crate::FeedError;

/// What of a server's certificate is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verified {
    /// Nothing: what is sent is encrypted, whichever server answers.
    Nothing,
    /// That an authority has signed it, for whatever name.
    Chain,
    /// That too, and that it is for the name of the server.
    Name,
}

/// Whom a server is trusted for, and how this client shows who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tls {
    pub(super) verified: Verified,
    /// Certificates of authorities; those of the system without one.
    pub(super) authorities: Option<PathBuf>,
    /// The certificate of this client, and its key.
    pub(super) client: Option<(PathBuf, PathBuf)>,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// [`Invalid`](crate::FeedErrorKind::Invalid) if one of them cannot be read, or is not what it has to be.
    pub(super) fn config(&self) -> Result<Arc<ClientConfig>, FeedError> {
        let provider = Arc::new(ring::default_provider());
        let unfit = |error: Error| FeedError::invalid(format!("TLS cannot be set up: {error}"));
        let builder = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
        let builder = builder.map_err(unfit)?;
        let builder = if self.verified == Verified::Name {
            builder.with_root_certificates(self.roots()?)
        } else {
            let chain = match self.verified {
                Verified::Nothing => None,
                _ => {
                    let verifier = WebPkiServerVerifier::builder_with_provider(self.roots()?.into(), provider.clone());
                    let unfit = |error| FeedError::invalid(format!("the authorities cannot be used: {error}"));
                    Some(verifier.build().map_err(unfit)?)
                }
            };
            builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyName { chain, provider }))
        };
        let config = match &self.client {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let key_der = PrivateKeyDer::from_pem_file(key).map_err(|error| unread(key, &error))?;
                let unfit = |error| FeedError::invalid(format!("{} cannot be used: {error}", certificate.display()));
                builder.with_client_auth_cert(certificates(certificate)?, key_der).map_err(unfit)?
            }
        };
        Ok(Arc::new(config))
    }

    fn roots(&self) -> Result<RootCertStore, FeedError> {
        let mut roots = RootCertStore::empty();
        match &self.authorities {
            Some(path) => {
                for certificate in certificates(path)? {
                    roots.add(certificate).map_err(|error| unread(path, &error))?;
                }
            }
            // Some of a system may not be understood.
            None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
        }
        match roots.is_empty() {
            false => Ok(roots),
            true => Err(FeedError::invalid("no authority is trusted: the system has none")
                .hint("name a file with the certificate of the server's authority")),
        }
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, FeedError> {
    let all = CertificateDer::pem_file_iter(path).map_err(|error| unread(path, &error))?;
    let all: Vec<_> = all.collect::<Result<_, _>>().map_err(|error| unread(path, &error))?;
    if all.is_empty() { Err(unread(path, &"it has no certificate")) } else { Ok(all) }
}

fn unread(path: &Path, why: &dyn Display) -> FeedError {
    FeedError::invalid(format!("could not read {}: {why}", path.display())).hint("it has to be a file in PEM")
}

/// The error of a handshake: one about certificates stays until somebody corrects it.
pub(super) fn failed(address: &str, error: &std::io::Error) -> FeedError {
    let why = format!("could not begin TLS with {address}: {error}");
    match error.get_ref().and_then(|error| error.downcast_ref::<Error>()) {
        Some(Error::InvalidCertificate(_) | Error::PeerIncompatible(_) | Error::NoCertificatesPresented) => {
            FeedError::invalid(why).hint("is the server's authority trusted, and its certificate for this name?")
        }
        _ => FeedError::unavailable(why),
    }
}

/// Takes a certificate for any name, of an authority or without one. That the server has its key is verified.
#[derive(Debug)]
struct AnyName {
    chain: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        // The name is looked at last.
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
