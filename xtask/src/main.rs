//! Only here so that `compare` builds in its own worktree; the real xtask replaces it.
mod compare;

fn main() -> Result<(), String> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.split_first() {
        Some((name, rest)) if name == "compare" => compare::run(rest),
        _ => Err("usage: cargo xtask compare --weir PATH".into()),
    }
}
