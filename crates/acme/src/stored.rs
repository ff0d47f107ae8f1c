//! The files of a certificate, and what is in them.
//!
//! | file | contents |
//! |---|---|
//! | `STEM.N.key` | a private key, written before the authority is asked for anything |
//! | `STEM.N.crt` | its chain of certificates |
//! | `STEM.json` | the number N of the current pair, and when pairs were obtained; written last |
//! | `STEM.order` | the order under way, for the pair N + 1 |
//! | `STEM.failures` | failures by issuer, and when each may be asked again |
//! | `STEM.answers` | answers to challenges that are published |
//! | `STEM.lock` | who orders now |

use std::collections::BTreeMap;
use std::io;

use net::tls::Credential;
use net::{KeyPair, NewKey};
use tls::SlotCertificate;
use wire::json::{self, JsonLimits, JsonValue};
use wire::x509::X509;

use crate::state_folder::StateFolder;

const LIMITS: JsonLimits = JsonLimits { bytes_max: 256 * 1024, depth_max: 4, values_max: 4096 };

/// The files of one certificate.
#[derive(Clone, Copy)]
pub(crate) struct StoredCertificate<'a> {
    pub(crate) folder: &'a StateFolder,
    pub(crate) stem: &'a str,
}

/// `STEM.json`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) number: u64,
    /// The URL of the directory that the certificate is from.
    pub(crate) directory: String,
    /// When the last pairs were obtained, in seconds since 1970.
    pub(crate) obtained: Vec<i64>,
    /// Whether the pair was removed on request. The number stays: another process that shows the
    /// pair must not take the next one for it.
    pub(crate) is_forgotten: bool,
}

/// `STEM.order`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OrderUnderWay {
    pub(crate) url: String,
    pub(crate) directory: String,
    /// The number of the key.
    pub(crate) number: u64,
}

/// `STEM.failures`, by name of the issuer.
pub(crate) type Failures = BTreeMap<String, IssuerFailures>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct IssuerFailures {
    /// In a row.
    pub(crate) count: u32,
    /// When the issuer may be asked again, in seconds since 1970, as all times.
    pub(crate) next_s: i64,
    pub(crate) error: String,
    /// When the last ones happened.
    pub(crate) times: Vec<i64>,
    /// Until when the authority has asked to wait (`Retry-After`).
    pub(crate) asked_s: i64,
}

/// A pair of certificate and key that is current.
pub(crate) struct CurrentCertificate {
    pub(crate) manifest: Manifest,
    pub(crate) certificate: SlotCertificate,
    pub(crate) not_before_s: i64,
    pub(crate) not_after_s: i64,
}

impl<'a> StoredCertificate<'a> {
    pub(crate) fn manifest(&self) -> io::Result<Option<Manifest>> {
        self.document("json", |object| {
            Some(Manifest {
                number: object.get("number")?.as_u64()?,
                directory: object.get("directory")?.as_text()?.to_owned(),
                obtained: times(object, "obtained")?,
                is_forgotten: object.get("forgotten").is_some(),
            })
        })
    }

    /// The current pair, if it is there and usable.
    pub(crate) fn current(&self) -> io::Result<Option<CurrentCertificate>> {
        let Some(manifest) = self.manifest()?.filter(|one| !one.is_forgotten) else {
            return Ok(None);
        };
        let (chain, key) = (self.chain_name(manifest.number), self.key_name(manifest.number));
        match (self.folder.read(&chain)?, self.folder.read(&key)?) {
            (Some(chain), Some(key)) => CurrentCertificate::read(manifest, chain, key).map(Some),
            (None, _) => Err(io::Error::other(format!("\"{chain}\" is missing"))),
            (_, None) => Err(io::Error::other(format!("\"{key}\" is missing"))),
        }
    }

    /// The key for a certificate to come: the one that is there, or a new one. It is on the disk
    /// when this returns.
    pub(crate) fn key(&self, number: u64, new: NewKey) -> io::Result<KeyPair> {
        let name = self.key_name(number);
        if let Some(text) = self.folder.read(&name)?
            && let Ok(key) = KeyPair::read(&text)
        {
            return Ok(key);
        }
        let key =
            KeyPair::generate(new).map_err(|failure| io::Error::other(failure.to_string()))?;
        self.folder.write(&name, &key.pem())?;
        Ok(key)
    }

    /// Makes a chain current: chain, then manifest. The key is there already. Older pairs but the
    /// last are removed.
    pub(crate) fn make_current(&self, manifest: &Manifest, chain: &[u8]) -> io::Result<()> {
        self.folder.write(&self.chain_name(manifest.number), chain)?;
        self.write_manifest(manifest)?;
        self.end_order()?;
        if let Some(old) = manifest.number.checked_sub(2) {
            self.folder.remove(&self.chain_name(old))?;
            self.folder.remove(&self.key_name(old))?;
        }
        Ok(())
    }

    /// Removes the pair and its order, and keeps what limits further orders. The manifest is
    /// written first: after a crash, files may be left that nothing names.
    pub(crate) fn forget(&self) -> io::Result<()> {
        let Some(manifest) = self.manifest()? else { return self.remove(0) };
        let manifest = Manifest { is_forgotten: true, ..manifest };
        self.write_manifest(&manifest)?;
        self.remove(manifest.number)
    }

    /// Removes all that is stored.
    pub(crate) fn remove_all(&self) -> io::Result<()> {
        let number = self.manifest()?.map_or(0, |manifest| manifest.number);
        self.folder.remove(&self.file("json"))?;
        self.remove(number)
    }

    /// Removes the order, the failures, and the pairs: the one of that number and its neighbours,
    /// of which the next one has a key as long as it is being ordered.
    fn remove(&self, number: u64) -> io::Result<()> {
        self.end_order()?;
        for number in number.saturating_sub(1)..=number + 1 {
            self.folder.remove(&self.chain_name(number))?;
            self.folder.remove(&self.key_name(number))?;
        }
        self.set_failures(&Failures::new())
    }

    fn write_manifest(&self, manifest: &Manifest) -> io::Result<()> {
        let mut text = format!("{{\"number\": {}, \"directory\": ", manifest.number).into_bytes();
        json::write_text(manifest.directory.as_bytes(), &mut text);
        write_times("obtained", &manifest.obtained, &mut text);
        if manifest.is_forgotten {
            text.extend_from_slice(b", \"forgotten\": true");
        }
        text.extend_from_slice(b"}\n");
        self.folder.write(&self.file("json"), &text)
    }

    pub(crate) fn order(&self) -> io::Result<Option<OrderUnderWay>> {
        self.document("order", |object| {
            Some(OrderUnderWay {
                url: object.get("url")?.as_text()?.to_owned(),
                directory: object.get("directory")?.as_text()?.to_owned(),
                number: object.get("number")?.as_u64()?,
            })
        })
    }

    pub(crate) fn begin_order(&self, order: &OrderUnderWay) -> io::Result<()> {
        let mut text = format!("{{\"number\": {}, \"url\": ", order.number).into_bytes();
        json::write_text(order.url.as_bytes(), &mut text);
        text.extend_from_slice(b", \"directory\": ");
        json::write_text(order.directory.as_bytes(), &mut text);
        text.extend_from_slice(b"}\n");
        self.folder.write(&self.file("order"), &text)
    }

    pub(crate) fn end_order(&self) -> io::Result<()> {
        self.folder.remove(&self.file("order"))
    }

    pub(crate) fn failures(&self) -> io::Result<Failures> {
        let read = self.document("failures", |object| {
            let of_issuer = |value: &JsonValue<'_>| {
                let object = value.as_object()?;
                Some(IssuerFailures {
                    count: u32::try_from(object.get("count")?.as_u64()?).ok()?,
                    next_s: i64::try_from(object.get("next")?.as_u64()?).ok()?,
                    error: object.get("error")?.as_text()?.to_owned(),
                    times: times(object, "times")?,
                    asked_s: match object.get("asked") {
                        Some(asked) => i64::try_from(asked.as_u64()?).ok()?,
                        None => 0,
                    },
                })
            };
            object.iter().map(|one| Some((one.name.to_string(), of_issuer(&one.value)?))).collect()
        });
        Ok(read?.unwrap_or_default())
    }

    /// Writes the failures; none is no file.
    pub(crate) fn set_failures(&self, failures: &Failures) -> io::Result<()> {
        if failures.is_empty() {
            return self.folder.remove(&self.file("failures"));
        }
        let mut text = Vec::new();
        for (name, one) in failures {
            text.extend_from_slice(if text.is_empty() { b"{" } else { b",\n " });
            json::write_text(name.as_bytes(), &mut text);
            let numbers = format!(": {{\"count\": {}, \"next\": {}", one.count, one.next_s.max(0));
            text.extend_from_slice(numbers.as_bytes());
            write_times("times", &one.times, &mut text);
            if one.asked_s > 0 {
                text.extend_from_slice(format!(", \"asked\": {}", one.asked_s).as_bytes());
            }
            text.extend_from_slice(b", \"error\": ");
            json::write_text(one.error.as_bytes(), &mut text);
            text.push(b'}');
        }
        text.extend_from_slice(b"}\n");
        self.folder.write(&self.file("failures"), &text)
    }

    pub(crate) fn file(&self, kind: &str) -> String {
        format!("{}.{kind}", self.stem)
    }

    fn key_name(&self, number: u64) -> String {
        self.file(&format!("{number}.key"))
    }

    fn chain_name(&self, number: u64) -> String {
        self.file(&format!("{number}.crt"))
    }

    /// Reads a file of JSON. One that is broken is an error, not the absence of one: somebody has
    /// changed it.
    pub(crate) fn document<T>(
        &self,
        kind: &str,
        read: impl FnOnce(&json::JsonObject<'_>) -> Option<T>,
    ) -> io::Result<Option<T>> {
        let name = self.file(kind);
        let Some(text) = self.folder.read(&name)? else { return Ok(None) };
        let document = json::parse(&text, LIMITS).ok();
        let value = document.as_ref().and_then(JsonValue::as_object).and_then(read);
        value.map(Some).ok_or_else(|| io::Error::other(format!("\"{name}\" is broken")))
    }
}

/// Times by name; none, if there is no such member.
fn times(object: &json::JsonObject<'_>, name: &str) -> Option<Vec<i64>> {
    match object.get(name) {
        None => Some(Vec::new()),
        Some(JsonValue::List(times)) => {
            times.iter().map(|time| i64::try_from(time.as_u64()?).ok()).collect()
        }
        Some(_) => None,
    }
}

/// Adds a member with times, unless there are none.
fn write_times(name: &str, times: &[i64], out: &mut Vec<u8>) {
    if !times.is_empty() {
        let times: Vec<_> = times.iter().map(|time| (*time).max(0).to_string()).collect();
        out.extend_from_slice(format!(", \"{name}\": [{}]", times.join(", ")).as_bytes());
    }
}

impl CurrentCertificate {
    pub(crate) fn read(manifest: Manifest, chain: Vec<u8>, key: Vec<u8>) -> io::Result<Self> {
        let broken = |what: &str| io::Error::other(what.to_owned());
        let credential = Credential::read(&chain, &key, &[])
            .map_err(|_| broken("certificate and key are broken, or do not belong together"))?;
        let leaf = credential.chain().next().map(X509::parse);
        let Some(Ok(leaf)) = leaf else { return Err(broken("the certificate is broken")) };
        let (not_before_s, not_after_s) = (leaf.not_before.seconds(), leaf.not_after.seconds());
        let certificate = SlotCertificate { credential, chain, key };
        Ok(Self { manifest, certificate, not_before_s, not_after_s })
    }
}

#[cfg(test)]
mod tests {
    use net::testing::tls::{ECDSA_CERTIFICATE, ECDSA_KEY};
    use wire::signer::Signer as _;

    use super::*;

    const DIRECTORY: &str = "https://acme.test/\"dir\"";

    fn stored(folder: &StateFolder) -> StoredCertificate<'_> {
        StoredCertificate { folder, stem: "a" }
    }

    #[test]
    fn the_manifest_says_which_pair_is_current() {
        let folder = StateFolder::in_memory();
        let stored = stored(&folder);
        assert!(stored.current().unwrap().is_none());
        folder.write("a.1.key", ECDSA_KEY.as_bytes()).unwrap();
        folder.write("a.1.crt", ECDSA_CERTIFICATE.as_bytes()).unwrap();
        assert!(stored.current().unwrap().is_none(), "without a manifest there is none");
        for number in 1..=4 {
            folder.write(&stored.key_name(number), ECDSA_KEY.as_bytes()).unwrap();
            let obtained = (0..number as i64).collect();
            let directory = DIRECTORY.into();
            let manifest = Manifest { number, directory, obtained, is_forgotten: false };
            stored.make_current(&manifest, ECDSA_CERTIFICATE.as_bytes()).unwrap();
            assert_eq!(stored.current().unwrap().unwrap().manifest, manifest);
        }
        let left = ["a.3.crt", "a.3.key", "a.4.crt", "a.4.key", "a.json"];
        assert_eq!(folder.names("").unwrap(), left);
    }

    #[test]
    fn a_key_is_made_once() {
        let folder = StateFolder::in_memory();
        let stored = stored(&folder);
        let key = stored.key(1, NewKey::EcdsaP256).unwrap();
        let again = stored.key(1, NewKey::EcdsaP256).unwrap();
        assert_eq!(key.public_bits(), again.public_bits());
        assert_ne!(key.public_bits(), stored.key(2, NewKey::EcdsaP256).unwrap().public_bits());
    }

    #[test]
    fn orders_and_failures_are_read_as_they_were_written() {
        let folder = StateFolder::in_memory();
        let stored = stored(&folder);
        assert_eq!(stored.order().unwrap(), None);
        let order = OrderUnderWay { url: "u".into(), directory: DIRECTORY.into(), number: 3 };
        stored.begin_order(&order).unwrap();
        assert_eq!(stored.order().unwrap(), Some(order));
        assert_eq!(stored.failures().unwrap(), Failures::new());
        let error = "a \"b\"\n".to_owned();
        let one = IssuerFailures { count: 2, next_s: 77, error, times: vec![5, 6], asked_s: 80 };
        let failures = Failures::from([("x".into(), one.clone()), ("y".into(), one)]);
        stored.set_failures(&failures).unwrap();
        assert_eq!(stored.failures().unwrap(), failures);
        stored.set_failures(&Failures::new()).unwrap();
        assert_eq!(folder.names("").unwrap(), ["a.order"]);
    }

    #[test]
    fn a_forgotten_certificate_leaves_its_number_and_its_times() {
        let folder = StateFolder::in_memory();
        let stored = stored(&folder);
        let mut manifest = Manifest { directory: DIRECTORY.into(), ..Manifest::default() };
        for number in 1..=2 {
            stored.key(number, NewKey::EcdsaP256).unwrap();
            (manifest.number, manifest.obtained) = (number, vec![7, 8]);
            stored.make_current(&manifest, ECDSA_CERTIFICATE.as_bytes()).unwrap();
        }
        stored.key(3, NewKey::EcdsaP256).unwrap();
        stored
            .begin_order(&OrderUnderWay { url: "u".into(), directory: "d".into(), number: 3 })
            .unwrap();
        stored.forget().unwrap();
        assert_eq!(folder.names("").unwrap(), ["a.json"]);
        assert!(stored.current().unwrap().is_none());
        let forgotten = Manifest { is_forgotten: true, ..manifest };
        assert_eq!(stored.manifest().unwrap(), Some(forgotten));
        stored.remove_all().unwrap();
        assert_eq!(folder.names("").unwrap(), [""; 0]);
    }

    #[test]
    fn a_broken_file_is_an_error() {
        let folder = StateFolder::in_memory();
        for kind in ["json", "order", "failures"] {
            folder.write(&format!("a.{kind}"), b"{\"number\": \"x\"}").unwrap();
        }
        let stored = stored(&folder);
        assert!(stored.current().is_err() && stored.order().is_err() && stored.failures().is_err());
    }
}
