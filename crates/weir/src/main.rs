//! The program: command line, processes, signals.

use std::sync::Arc;

fn main() {
    let mut path = String::from("/etc/weir/nginx.conf");
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        if arg == "-c" {
            path = args.next().expect("-c FILE");
        }
    }
    http::identity::settle("nginx", "1.22.1");
    observe::settle(observe::System {
        name: "nginx",
        hostname: net::system::hostname(),
        utc_offset_minutes: net::system::utc_offset_minutes,
        thread_id: net::system::thread_id,
    });
    let mut files = conf::Disk;
    let parsed = conf::parse(path.as_bytes(), b"/etc/nginx/", None, &mut files);
    let (sources, tree) = parsed.into_result();
    let fail = |error: conf::Error| -> ! {
        let place = error.span.map(|span| sources.place(span)).unwrap_or_default();
        eprintln!("weir: [emerg] {}{place}", error.message);
        std::process::exit(1);
    };
    let tree = tree.unwrap_or_else(|error| fail(error));
    let mut load =
        conf::Load::new(&mut files, "/usr/share/nginx/".as_ref(), "/etc/nginx/".as_ref());
    let http = tree.root.iter().find(|d| &*d.name.text == b"http").expect("http");
    let plan = http::read(http, &mut load).unwrap_or_else(|error| fail(error));
    let site = Arc::new(plan.compile(&mut load).unwrap_or_else(|error| fail(error)));
    net::run(async move {
        let worker = http::Worker::new(http::Generation::new(site.clone(), 1));
        for (number, listen) in site.listens().iter().enumerate() {
            let fd = net::listen(listen.address, listen.backlog).expect("listen");
            let listener = net::Listener::new(fd).expect("listener");
            net::spawn(worker.clone().accept(listener, number as u32));
        }
        std::future::pending::<()>().await;
    })
    .expect("worker");
}
