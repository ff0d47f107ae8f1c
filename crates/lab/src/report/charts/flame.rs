//! Flame graphs: a function is a box on the one that calls it, as wide as its CPU time per request.
//!
//! A difference has two graphs of one scale, the row's above its baseline's, so that what is new
//! can be seen as well as what has gone.

use super::super::markup::escaped;
use super::flame_panel::{FlamePanel, FlameSide, HEAD, WIDTH};
use crate::profile::{FrameTree, ProfileScale};

/// The style of flame graphs, in the page and in files.
pub(crate) const STYLE: &str = include_str!("flame.css");

/// A flame graph, or two that are compared; the drawing is made on demand.
pub(crate) struct FlameChart<'r> {
    /// The name of the chart's own file.
    pub(crate) file: String,
    pub(crate) caption: String,
    row: FlameSide<'r>,
    baseline: Option<FlameSide<'r>>,
}

/// Frames that are narrower than this share of the drawing are left out, ...
const SHARE_MIN: f64 = 0.003;
/// ... and more of them until the drawing is not larger than this.
const BYTES_MAX: usize = 140_000;
/// The least CPU time that a drawing is as wide as; a record may say 0.
const CPU_US_MIN: f64 = 0.001;

impl<'r> FlameChart<'r> {
    pub(crate) fn new(
        file: String,
        caption: String,
        row: FlameSide<'r>,
        baseline: Option<FlameSide<'r>>,
    ) -> Self {
        Self { file, caption, row, baseline }
    }

    /// The chart as a standalone file with its own background.
    pub(crate) fn svg_file(&self) -> String {
        const MARGIN: usize = 12;
        let (drawing, height) = self.drawn();
        let (width, height) = (WIDTH as usize + 2 * MARGIN, height + HEAD + MARGIN);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\">\n<style>\n{}{STYLE}</style>\n\
             <rect class=\"paper\" width=\"100%\" height=\"100%\" rx=\"6\"/>\n\
             <text x=\"{MARGIN}\" y=\"20\">{}</text>\n\
             <svg x=\"{MARGIN}\" y=\"{HEAD}\">\n{drawing}</svg>\n</svg>\n",
            super::STYLE,
            escaped(&self.caption),
        )
    }

    /// The chart for a page, as wide as the page, without caption and style.
    pub(crate) fn drawing(&self) -> String {
        let (drawing, height) = self.drawn();
        let view = format!("0 0 {WIDTH} {height}");
        format!("<svg class=\"wide\" width=\"100%\" viewBox=\"{view}\">\n{drawing}</svg>\n")
    }

    /// The drawing and its height.
    fn drawn(&self) -> (String, usize) {
        let mut share_min = SHARE_MIN;
        loop {
            let drawn = self.drawn_from(share_min);
            if drawn.0.len() <= BYTES_MAX {
                return drawn;
            }
            share_min *= 1.25;
        }
    }

    fn drawn_from(&self, share_min: f64) -> (String, usize) {
        let sides = [self.baseline.as_ref(), Some(&self.row)];
        let tree = FrameTree::of(self.baseline.as_ref().map(|side| side.profile), self.row.profile);
        let scales = sides.map(|side| {
            side.map_or_else(ProfileScale::default, |side| {
                ProfileScale::of(side.profile, side.cpu_us)
            })
        });
        let total = sides.map(|side| side.map_or(0.0, |side| side.cpu_us));
        let px_per_us = WIDTH / total[0].max(total[1]).max(CPU_US_MIN);
        let (mut text, mut y) = (String::new(), 0);
        for (at, side) in sides.into_iter().enumerate().rev() {
            let Some(side) = side else { continue };
            let baseline_us = self.baseline.as_ref().map(|side| side.cpu_us);
            let width_min = WIDTH * share_min;
            let panel = FlamePanel::new(at, scales, px_per_us, width_min, baseline_us, &tree.root);
            panel.draw(side, &mut y, &mut text);
        }
        (format!("<g class=\"flame\">\n{text}</g>\n"), y + 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{ProfileRecord, parsers};

    fn profile(stacks: &[(&str, usize)]) -> ProfileRecord {
        let sample = |(stack, count): &(&str, usize)| {
            let frames: Vec<&str> = stack.split(' ').rev().collect();
            let lines = frames.iter().map(|name| format!("\t1 {name} (/bin/weir)\n"));
            (lines.collect::<String>() + "\n").repeat(*count)
        };
        parsers::stacks(&stacks.iter().map(sample).collect::<String>())
    }

    fn side<'r>(name: &str, profile: &'r ProfileRecord, cpu_us: f64) -> FlameSide<'r> {
        FlameSide { name: name.to_owned(), profile, cpu_us }
    }

    fn lines<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
        let begin = format!("<g><title>{name}: ");
        text.lines().filter(|line| line.starts_with(&begin)).collect()
    }

    #[test]
    fn frames_are_as_wide_as_their_time_on_their_callers() {
        let row = profile(&[("main read", 250), ("main send", 748), ("main rare", 2)]);
        let chart = FlameChart::new("f".into(), "c".into(), side("<a>", &row, 8.0), None);
        let drawn = chart.drawing();
        assert!(lines(&drawn, "rare").is_empty(), "{drawn}");
        assert_eq!(
            lines(&drawn, "send"),
            ["<g><title>send: 5.98 us</title><rect class=\"own\" x=\"241.9\" y=\"26\" \
              width=\"718.1\" height=\"16\"/><text x=\"244.9\" y=\"38\">send</text></g>"]
        );
        assert!(lines(&drawn, "main")[0].contains("x=\"0.0\" y=\"42\" width=\"960.0\""), "{drawn}");
        assert!(drawn.contains(">&lt;a&gt;: 8.00 us of CPU time per request<"), "{drawn}");
        assert!(drawn.contains(">1 us</text>"), "{drawn}");
    }

    #[test]
    fn differences_are_coloured_in_both_graphs() {
        let row = profile(&[("main send", 900), ("main parse", 300)]);
        let baseline = profile(&[("main copy", 700), ("main parse", 300)]);
        let chart = FlameChart::new(
            "f".into(),
            "c".into(),
            side("on", &row, 12.0),
            Some(side("off", &baseline, 10.0)),
        );
        let drawn = chart.drawing();
        let classes = |name: &str| {
            let lines = lines(&drawn, name).into_iter();
            let class = lines.filter_map(|line| line.split("class=\"").nth(1)?.split('"').next());
            class.collect::<Vec<_>>()
        };
        assert_eq!(classes("send"), ["more3"]);
        assert_eq!(classes("copy"), ["less3"]);
        assert_eq!(classes("parse"), ["same", "same"]);
        let parse = lines(&drawn, "parse")[0];
        assert!(parse.contains("3.00 us, baseline 3.00 us: +0.00 us [-0.73 +0.73]"), "{parse}");
        // Both have the scale of the larger one.
        assert!(drawn.contains("width=\"960.0\"") && drawn.contains("width=\"800.0\""), "{drawn}");
    }

    #[test]
    fn a_file_of_many_functions_stays_small_and_standalone() {
        let names: Vec<String> =
            (0..300).map(|at| format!("main {}{at}", "<x>::".repeat(30))).collect();
        let stacks: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), 2)).collect();
        let (row, baseline) = (profile(&stacks), profile(&stacks));
        let both = FlameChart::new(
            "f".into(),
            "c".into(),
            side("\"><script>", &row, 1.0),
            Some(side("off", &baseline, 1.0)),
        );
        let file = both.svg_file();
        assert!(file.len() < 150_000 && file.len() > 1000, "{}", file.len());
        let rest = file.replacen("xmlns=\"http://www.w3.org/2000/svg\"", "", 1);
        for part in ["http", "href", "url(", "@import", "<script", "NaN", "inf"] {
            assert!(!rest.contains(part), "{part:?} in {file}");
        }
    }

    #[test]
    fn an_empty_profile_can_be_drawn() {
        let empty = ProfileRecord::default();
        let chart = FlameChart::new("f".into(), "c".into(), side("a", &empty, 0.0), None);
        assert!(!chart.svg_file().contains("NaN"));
    }
}
