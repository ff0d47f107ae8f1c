//! All groups with their servers, for `weir ctl`.

use conf::Subsystem;
use wire::json::write_text;

use super::Rosters;
use crate::subsystems::Sites;

/// `{"http":{"app":{"persistence":"file","servers":[…]}},"stream":{}}`
pub fn listing(sites: &Sites, rosters: &Rosters) -> String {
    let blocks = [("http", Subsystem::Http), ("stream", Subsystem::Stream)];
    let mut out = b"{".to_vec();
    for (number, (block, subsystem)) in blocks.into_iter().enumerate() {
        out.extend_from_slice(if number > 0 { b"," } else { b"" });
        write_text(block.as_bytes(), &mut out);
        out.extend_from_slice(b":{");
        write_groups(subsystem, sites, rosters, &mut out);
        out.push(b'}');
    }
    out.push(b'}');
    String::from_utf8_lossy(&out).into_owned()
}

fn write_groups(subsystem: Subsystem, sites: &Sites, rosters: &Rosters, out: &mut Vec<u8>) {
    let mut groups: Vec<_> = sites.groups().filter(|one| one.subsystem() == subsystem).collect();
    groups.sort_by_key(|group| group.name().to_vec());
    for (number, group) in groups.into_iter().enumerate() {
        out.extend_from_slice(if number > 0 { b"," } else { b"" });
        write_text(group.name(), out);
        let has_state = group.rules().is_some_and(|rules| rules.state.is_some());
        let persistence = if has_state { "file" } else { "none" };
        out.extend_from_slice(format!(":{{\"persistence\":\"{persistence}\"").as_bytes());
        if let Some(owner) = rosters.owner(group) {
            out.extend_from_slice(b",\"owner\":");
            write_text(owner, out);
        }
        if let Some(version) = rosters.version(group) {
            out.extend_from_slice(b",\"version\":");
            write_text(version, out);
        }
        out.extend_from_slice(b",\"servers\":");
        out.extend(rosters.roster(group).to_json(subsystem));
        out.push(b'}');
    }
}
