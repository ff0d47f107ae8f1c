//! The account at an issuer: its key, its URL, and its limit of concurrent orders.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use net::KeyPair;
use wire::acme::{AcmeAccount, key_thumbprint};

use crate::client::AcmeClient;
use crate::crypto::ProcessCrypto;
use crate::issuer::{AccountKey, AcmeIssuer};
use crate::orders::{AccountOrders, OrderPermit};
use crate::state_folder::StateFolder;

/// As in nginx-acme, whose files are found.
const KEY_FILE: &str = "account.key";
/// The URL of the account. Further lines are our own: the directory, and the key's thumbprint.
const URL_FILE: &str = "account.url";
/// The same of the directory for trials.
const STAGING_URL_FILE: &str = "account.staging.url";

/// How often those that wait for the account look for it.
const OPENING_PAUSE: Duration = Duration::from_millis(500);

/// An issuer in use.
pub(crate) struct IssuerInUse {
    pub(crate) issuer: Arc<AcmeIssuer>,
    pub(crate) client: AcmeClient,
    /// The same issuer at its directory for trials.
    pub(crate) staging: Option<Rc<Self>>,
    url_file: &'static str,
    key: RefCell<Option<Rc<KeyPair>>>,
    url: RefCell<Option<String>>,
    /// Whether an order is under way that may create the account.
    is_opening: Cell<bool>,
    orders: Rc<AccountOrders>,
    /// Questions when to renew, which must not keep orders waiting.
    questions: Rc<AccountOrders>,
}

/// What the state folder says about the account.
struct StoredAccount {
    key: KeyPair,
    url: Option<String>,
}

impl IssuerInUse {
    pub(crate) fn new(issuer: Arc<AcmeIssuer>) -> Rc<Self> {
        let staging = issuer
            .staging()
            .map(|staging| Rc::new(Self::of(Arc::new(staging), None, STAGING_URL_FILE)));
        Rc::new(Self::of(issuer, staging, URL_FILE))
    }

    fn of(issuer: Arc<AcmeIssuer>, staging: Option<Rc<Self>>, url_file: &'static str) -> Self {
        Self {
            client: AcmeClient::new(issuer.clone()),
            issuer,
            staging,
            url_file,
            key: RefCell::default(),
            url: RefCell::default(),
            is_opening: Cell::new(false),
            orders: AccountOrders::new(),
            questions: AccountOrders::new(),
        }
    }

    /// Waits until another question may be asked when to renew.
    pub(crate) async fn question_permit(&self) -> OrderPermit {
        self.questions.permit().await
    }

    /// Waits until another order may begin. As long as there is no account, there is one order.
    pub(crate) async fn permit(self: &Rc<Self>) -> IssuerPermit {
        let permit = self.orders.permit().await;
        while self.url.borrow().is_none() && self.is_opening.replace(true) {
            net::sleep(OPENING_PAUSE).await;
        }
        IssuerPermit { issuer: self.clone(), _permit: permit }
    }

    /// The account. A missing key is made and stored first.
    pub(crate) async fn account(&self) -> io::Result<AcmeAccount> {
        if self.key.borrow().is_none() {
            let (issuer, url_file) = (self.issuer.clone(), self.url_file);
            let stored = net::offload(move || StoredAccount::open(&issuer, url_file)).await?;
            *self.key.borrow_mut() = Some(Rc::new(stored.key));
            *self.url.borrow_mut() = stored.url;
        }
        let key = self.key.borrow().clone();
        let key = key.ok_or_else(|| io::Error::other("there is no account key"))?;
        Ok(AcmeAccount {
            key,
            url: self.url.borrow().clone(),
            contact: self.issuer.contact.clone(),
            accepts_terms: self.issuer.accepts_terms,
            external: self.issuer.external.clone(),
            only_existing: false,
        })
    }

    /// Stores the URL of the account.
    pub(crate) async fn opened(&self, url: String) -> io::Result<()> {
        let Some(key) = self.key.borrow().clone() else { return Ok(()) };
        let text = format!("{url}\n{}\n{}\n", self.issuer.uri, thumbprint(&key)?);
        let (folder, file) = (self.issuer.folder.clone(), self.url_file);
        net::offload(move || folder.write(file, text.as_bytes())).await?;
        *self.url.borrow_mut() = Some(url);
        Ok(())
    }
}

/// An order may be under way as long as this lives.
pub(crate) struct IssuerPermit {
    issuer: Rc<IssuerInUse>,
    _permit: OrderPermit,
}

impl IssuerPermit {
    pub(crate) fn is_of(&self, issuer: &Rc<IssuerInUse>) -> bool {
        Rc::ptr_eq(&self.issuer, issuer)
    }
}

impl Drop for IssuerPermit {
    fn drop(&mut self) {
        self.issuer.is_opening.set(false);
    }
}

impl StoredAccount {
    fn open(issuer: &AcmeIssuer, url_file: &str) -> io::Result<Self> {
        let key = match &issuer.account_key {
            AccountKey::File(text) => read_key(text, "account_key")?,
            AccountKey::Made(new) => match issuer.folder.read(KEY_FILE)? {
                Some(text) => read_key(&text, KEY_FILE)?,
                None => make_key(&issuer.folder, *new)?,
            },
        };
        let url = match issuer.folder.read(url_file)? {
            Some(text) => url_of(&text, &issuer.uri, &thumbprint(&key)?),
            None => None,
        };
        Ok(Self { key, url })
    }
}

/// Makes a key, unless another process has made one meanwhile.
fn make_key(folder: &StateFolder, new: net::NewKey) -> io::Result<KeyPair> {
    let key = KeyPair::generate(new).map_err(|failure| io::Error::other(failure.to_string()))?;
    if folder.create(KEY_FILE, &key.pem())? {
        return Ok(key);
    }
    read_key(&folder.read(KEY_FILE)?.unwrap_or_default(), KEY_FILE)
}

fn read_key(text: &[u8], name: &str) -> io::Result<KeyPair> {
    KeyPair::read(text).map_err(|error| io::Error::other(format!("\"{name}\": {error}")))
}

fn thumbprint(key: &KeyPair) -> io::Result<String> {
    key_thumbprint(key, &ProcessCrypto).map_err(|_| io::Error::other("the account key is unusable"))
}

/// The URL, if it is one of this directory and key.
fn url_of(text: &[u8], directory: &str, thumbprint: &str) -> Option<String> {
    let mut lines = std::str::from_utf8(text).ok()?.lines();
    let url = lines.next().filter(|url| !url.is_empty())?;
    let is_same = |line: Option<&str>, own: &str| line.is_none_or(|line| line == own);
    let is_own = is_same(lines.next(), directory) && is_same(lines.next(), thumbprint);
    is_own.then(|| url.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_of_another_directory_or_key_is_not_used() {
        let text = b"https://acme.test/account/1\nhttps://acme.test/dir\nabc\n";
        let url = Some("https://acme.test/account/1".to_owned());
        assert_eq!(url_of(text, "https://acme.test/dir", "abc"), url);
        assert_eq!(url_of(text, "https://acme.test/staging", "abc"), None);
        assert_eq!(url_of(text, "https://acme.test/dir", "xyz"), None);
        assert_eq!(url_of(b"https://acme.test/account/1", "d", "t"), url, "nginx-acme's");
    }

    #[test]
    fn two_processes_have_one_key() {
        use wire::signer::Signer as _;
        let folder = StateFolder::in_memory();
        let first = make_key(&folder, net::NewKey::EcdsaP256).unwrap();
        let second = make_key(&folder, net::NewKey::EcdsaP256).unwrap();
        assert_eq!(first.public_bits(), second.public_bits());
    }
}
