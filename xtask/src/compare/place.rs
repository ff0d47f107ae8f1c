//! Where one server runs: its folder, its ports, its version. Filled into what is sent, blanked in
//! what comes back, so that two servers can be compared.

use super::text::replaced;

#[derive(Clone, Debug)]
pub(super) struct ServerEnvironment {
    pub(super) dir: String,
    /// Its ports; the first is `%%PORT%%`, then `%%PORT2%%` and so on.
    pub(super) ports: Vec<u16>,
    /// Those of its backends: `%%BACKEND%%`, then `%%BACKEND2%%`.
    pub(super) backends: Vec<u16>,
    version: String,
}

impl ServerEnvironment {
    pub(super) fn new(dir: String, ports: Vec<u16>, version: String) -> ServerEnvironment {
        ServerEnvironment { dir, ports, backends: vec![], version }
    }

    /// `template` with the macros replaced.
    pub(super) fn filled(&self, template: &[u8]) -> Vec<u8> {
        self.pairs().iter().fold(template.to_vec(), |text, (name, value)| {
            replaced(&text, name.as_bytes(), value.as_bytes(), |_, _| true)
        })
    }

    /// `bytes` with what belongs to this place turned back into macros.
    pub(super) fn blanked(&self, bytes: &[u8]) -> Vec<u8> {
        self.pairs().iter().fold(bytes.to_vec(), |text, (name, value)| {
            let number = value.bytes().all(|b| b.is_ascii_digit());
            let digit = |byte: Option<&u8>| number && byte.is_some_and(u8::is_ascii_digit);
            let border = |before: Option<&u8>, after: Option<&u8>| !digit(before) && !digit(after);
            replaced(&text, value.as_bytes(), name.as_bytes(), border)
        })
    }

    fn pairs(&self) -> Vec<(String, String)> {
        let numbered = |name: &'static str, ports: &[u16]| -> Vec<(String, String)> {
            let name = |index| match index {
                0 => format!("%%{name}%%"),
                _ => format!("%%{name}{}%%", index + 1),
            };
            let named = |(index, port): (usize, &u16)| (name(index), port.to_string());
            ports.iter().enumerate().map(named).collect()
        };
        let ports = numbered("PORT", &self.ports).into_iter();
        let ports = ports.chain(numbered("BACKEND", &self.backends));
        let names = [("%%DIR%%", &self.dir), ("%%VERSION%%", &self.version)];
        ports.chain(names.map(|(name, value)| (name.into(), value.clone()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanking_undoes_filling() {
        let place = ServerEnvironment::new("/tmp/x".into(), vec![40001, 40002], "1.2".into());
        let template = b"root %%DIR%%/a; listen %%PORT%%; listen %%PORT2%%; nginx/%%VERSION%%";
        let filled = place.filled(template);
        assert_eq!(filled, b"root /tmp/x/a; listen 40001; listen 40002; nginx/1.2");
        assert_eq!(place.blanked(&filled), template);
        assert_eq!(place.blanked(b"140001"), b"140001");
    }

    #[test]
    fn backends_have_names_of_their_own() {
        let place = ServerEnvironment::new("/tmp/x".into(), vec![40001], "1.2".into());
        let place = ServerEnvironment { backends: vec![40003, 40004], ..place };
        let filled = place.filled(b"%%BACKEND%% %%BACKEND2%% %%PORT%%");
        assert_eq!(filled, b"40003 40004 40001");
        assert_eq!(place.blanked(&filled), b"%%BACKEND%% %%BACKEND2%% %%PORT%%");
    }
}
