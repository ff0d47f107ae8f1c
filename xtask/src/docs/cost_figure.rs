//! docs/cost.svg, the figure of the README: some rows of the first table of docs/cost.md as bars.

use std::fmt::Write;

/// The rows that are shown, from top to bottom, and how they are called for those who have not read
/// the table. Rows that Weir loses belong here as well.
const SHOWN: [(&str, &str); 10] = [
    ("null", "a reply without a body"),
    ("1k", "a file of 1 KB"),
    ("100k", "a file of 100 KB"),
    ("gzip", "gzip"),
    ("close", "a new connection each time"),
    ("proxy", "reverse proxy"),
    ("proxy512", "reverse proxy, 512 clients"),
    ("tls", "HTTPS"),
    ("handshake", "a TLS handshake each time"),
    ("h2", "HTTP/2 over TLS"),
];

const WIDTH: u32 = 720;
const HEIGHT: u32 = FIRST_ROW + ROW * SHOWN.len() as u32 + 12;
const FIRST_ROW: u32 = 52;
const ROW: u32 = 26;
const BAR: u32 = 14;
/// Where bars begin, and the length of one that is as long as nginx's.
const BARS_AT: u32 = 220;
const NGINX_LENGTH: f64 = 420.0;

const STYLE: &str = "
text{font:14px system-ui,sans-serif;fill:#343c44}
.label{text-anchor:end}
.title{font-weight:600}
.paper{fill:#fdfdfc}
.nginx{fill:#d9dee2}
.less{fill:#0b62a8}
.more{fill:#b3470b}
@media(prefers-color-scheme:dark){
text{fill:#d5dade}
.paper{fill:#14181b}
.nginx{fill:#3a4249}
.less{fill:#6db6f2}
.more{fill:#f09a5e}
}
";

/// Draws the figure for the text of docs/cost.md.
pub(super) fn draw(page: &str) -> Result<String, String> {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\">\n<style>{STYLE}</style>\n\
         <rect class=\"paper\" width=\"100%\" height=\"100%\" rx=\"6\"/>\n\
         <text class=\"title\" x=\"{BARS_AT}\" y=\"30\">\
         CPU time per request, nginx (grey) = 1</text>\n"
    );
    let mut top = FIRST_ROW;
    for (row, label) in SHOWN {
        draw_row(&mut svg, top, label, ratio(page, row)?);
        top += ROW;
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

fn draw_row(svg: &mut String, top: u32, label: &str, ratio: f64) {
    let length = ratio * NGINX_LENGTH;
    let (text_y, text_x) = (top + BAR - 2, f64::from(BARS_AT) + length.max(NGINX_LENGTH) + 10.0);
    let class = if ratio <= 1.0 { "less" } else { "more" };
    let _ = writeln!(
        svg,
        "<text class=\"label\" x=\"{}\" y=\"{text_y}\">{label}</text>\
         <rect class=\"nginx\" x=\"{BARS_AT}\" y=\"{top}\" \
         width=\"{NGINX_LENGTH}\" height=\"{BAR}\"/>\
         <rect class=\"{class}\" x=\"{BARS_AT}\" y=\"{top}\" \
         width=\"{length:.1}\" height=\"{BAR}\"/>\
         <text x=\"{text_x:.1}\" y=\"{text_y}\">{ratio:.2}</text>",
        BARS_AT - 10,
    );
}

/// The ratio in a row of the table: the first number of its third cell.
fn ratio(page: &str, row: &str) -> Result<f64, String> {
    let begin = format!("| `{row}` |");
    let line = page.lines().find(|line| line.starts_with(&begin));
    let cell = line.and_then(|line| line.split('|').nth(3));
    let number = cell.and_then(|cell| cell.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| format!("docs/cost.md: no row {row:?} with a ratio"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_read_from_its_row() {
        let page = "| row | work | ratio |\n| `1k` | a file | 0.63 [0.61 0.66] | x |\n";
        assert_eq!(ratio(page, "1k"), Ok(0.63));
        assert!(ratio(page, "10k").is_err());
    }
}
