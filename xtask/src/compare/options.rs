//! The options of `xtask compare`.

use std::path::PathBuf;

const USAGE: &str =
    "Usage: cargo xtask compare --weir PATH [--nginx PATH] [--case NAME] [--any-order] [--show]
               [--keep] [--access]
               [--random N [--seed S] [--area WORD] [--shrink | --print]]
  --weir PATH    the program under test
  --nginx PATH   the reference, /usr/sbin/nginx unless given
  --case NAME    only the cases whose name contains NAME
  --any-order    header fields may come in another order
  --show         print what the reference answers
  --keep         leave the servers' folders, logs and all, and say where
  --access       instead of the corpus, every access rule by every way into a location and before
                 every content; --case chooses rules
  --random N     instead of the corpus, N generated configurations of each area
  --seed S       the number of the first, 0 unless given
  --area WORD    only areas whose name contains WORD
  --shrink       shrink what differs to what the difference needs
  --print        print the generated cases instead of playing them";

pub(super) struct Options {
    pub(super) weir: PathBuf,
    pub(super) nginx: PathBuf,
    pub(super) case: String,
    pub(super) any_order: bool,
    pub(super) show: bool,
    pub(super) keep: bool,
    pub(super) access: bool,
    pub(super) random: RandomCases,
}

impl Options {
    pub(super) fn parse(args: &[String]) -> Result<Options, String> {
        let mut options = Options {
            weir: PathBuf::new(),
            nginx: "/usr/sbin/nginx".into(),
            case: String::new(),
            any_order: false,
            show: false,
            keep: false,
            access: false,
            random: RandomCases::default(),
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{arg} wants a value\n{USAGE}"));
            match arg.as_str() {
                "--weir" => options.weir = value()?.into(),
                "--nginx" => options.nginx = value()?.into(),
                "--case" => options.case = value()?.clone(),
                "--any-order" => options.any_order = true,
                "--show" => options.show = true,
                "--keep" => options.keep = true,
                "--access" => options.access = true,
                "--random" => options.random.count = number(value()?)?,
                "--seed" => options.random.seed = number(value()?)?,
                "--area" => options.random.area = value()?.clone(),
                "--shrink" => options.random.shrinks = true,
                "--print" => options.random.prints = true,
                _ => return Err(format!("\"{arg}\" is no option\n{USAGE}")),
            }
        }
        match options.weir.as_os_str().is_empty() {
            true => Err(USAGE.into()),
            false => Ok(options),
        }
    }
}

fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("\"{word}\" is no number"))
}

#[derive(Clone, Debug, Default)]
pub(super) struct RandomCases {
    /// How many of each area.
    pub(super) count: u64,
    /// The number of the first.
    pub(super) seed: u64,
    /// Only areas whose name contains this.
    pub(super) area: String,
    /// Whether differences are shrunk, which takes a minute for each.
    pub(super) shrinks: bool,
    /// Whether cases are printed instead of played.
    pub(super) prints: bool,
}
