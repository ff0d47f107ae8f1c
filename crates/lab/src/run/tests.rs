use std::time::Duration;

use super::*;

static NEVER: AtomicBool = AtomicBool::new(false);

fn parse(words: &str) -> Result<RunArguments, String> {
    RunArguments::parse(&words.split_whitespace().map(OsString::from).collect::<Vec<_>>())
}

#[test]
fn arguments_are_parsed() {
    let arguments = parse("same --server nginx --against weir --quick --out d --resume --anyway");
    let arguments = arguments.unwrap();
    assert_eq!(arguments.servers, ["nginx", "weir"]);
    assert!(
        arguments.anyway
            && arguments.quick
            && arguments.resume
            && arguments.out == Some("d".into())
    );
    let defaults = parse("same").unwrap();
    assert!(!defaults.profile && parse("same --profile").unwrap().profile);
    assert_eq!((&defaults.servers[..], defaults.wait_idle), (&["weir".to_owned()][..], None));
    for (words, seconds) in [("same --wait-idle", 600), ("same --wait-idle=30s", 30)] {
        assert_eq!(parse(words).unwrap().wait_idle, Some(Duration::from_secs(seconds)));
    }
    for (words, message) in [
        ("", "a study is required"),
        ("a b", "only one study"),
        ("same --fast", "unknown option --fast"),
        ("same --out", "--out requires a value"),
        ("same --against weir", "--against names weir as well"),
        ("same --junit f", "--junit requires --fail-if"),
        ("same --stop-early", "--stop-early requires --fail-if"),
        (
            "same --search p99=1ms --fail-if capacity<0% --stop-early",
            "--stop-early cannot be combined with --fail-if capacity<0%: searches follow",
        ),
        ("same --baseline f --against nginx", "--baseline cannot be combined with --against"),
        (
            "same --baseline f --stop-early --fail-if rate<0%",
            "--baseline cannot be combined with --against or --stop-early",
        ),
        ("same --host proxy=ssh:a", "--host proxy=ssh:a: the parts are client, server"),
        ("same --host server=ssh:a --host server=ssh:b", "--host names the server twice"),
        ("same --loopback --host server=ssh:a", "--loopback and --host exclude each other"),
        ("same --fail-if fast", "--fail-if fast: expected a limit"),
        ("same --wait-idleness", "unknown option --wait-idleness"),
        ("same --wait-idle=soon", "--wait-idle=soon is no time such as 10m"),
    ] {
        let told = parse(words).err().unwrap_or_default();
        assert!(told.starts_with(message), "{words}: {told}");
    }
}

#[test]
fn studies_are_found_or_named() {
    assert!(list().contains("server-alone"));
    assert_eq!(read("same").unwrap().rows.len(), 2);
    let unknown = read("sam").err().unwrap_or_default();
    assert!(unknown.contains("there is no study \"sam\"") && unknown.contains("same"));
    assert!(read("/none.toml").is_err_and(|told| told.starts_with("/none.toml: ")));
}

#[test]
fn a_search_is_added_to_a_study() {
    let searched = |words: &str| {
        let mut study = read("same").unwrap();
        let added = parse(words).and_then(|arguments| arguments.add_search(&mut study));
        added.map(|()| study.search.map(|search| (search.bound, search.full)))
    };
    assert_eq!(searched("same").unwrap(), None);
    assert_eq!(searched("same --search p99=5ms").unwrap(), Some(("p99=5ms".to_owned(), 8)));
    let error = searched("same --search fast").err().unwrap_or_default();
    assert_eq!(error, "search.bound \"fast\" is not of the form p99=10ms");
    let error = searched("same --fail-if capacity<-5%").err().unwrap_or_default();
    assert_eq!(error, "--fail-if capacity<-5% needs a search: add --search p99=10ms");
}

#[test]
fn errors_are_reported_before_anything_runs() {
    let arguments = parse("same --server /no/such/server").unwrap();
    let told = run(&arguments, Path::new("/no/weir"), &[], &NEVER).err().unwrap_or_default();
    assert!(told.starts_with("/no/such/server: "), "{told}");
    let told = run(&parse("same --server false").unwrap(), Path::new("/no/weir"), &[], &NEVER);
    assert_eq!(told.err().as_deref(), Some("false is no server: it does not know -v"));
    // `echo` accepts all arguments and starts nothing.
    let told = run(&parse("same --server echo").unwrap(), Path::new("/no/weir"), &[], &NEVER);
    let told = told.err().unwrap_or_default();
    assert!(told.starts_with("row \"one\" does not start with echo: "), "{told}");
}

#[test]
fn a_machine_that_lacks_what_a_study_needs_is_refused() {
    let file = std::env::temp_dir().join(format!("weir-needs-{}.toml", std::process::id()));
    let (_, same) = BUILT_IN.iter().find(|(name, _)| *name == "same").unwrap();
    fs::write(&file, same.replace("[load]", "[needs]\nprocessors = 100000\n[load]")).unwrap();
    let of = |options: &str| {
        let arguments = parse(&format!("{} --server /no/server {options}", file.display()));
        run(&arguments.unwrap(), Path::new("/no/weir"), &[], &NEVER).err().unwrap_or_default()
    };
    let (refused, anyway) = (of(""), of("--anyway"));
    fs::remove_file(&file).unwrap();
    let begin = "the study needs a machine with 100000 processors and not ";
    assert!(refused.starts_with(begin) && refused.ends_with("; --anyway runs it on this one"));
    assert!(anyway.starts_with("/no/server: "), "{anyway}");
}
