//! One graph of a flame chart: the boxes of a profile, placed and coloured.

use super::super::markup::escaped;
use crate::profile::{CostDifference, FrameNode, ProfileRecord, ProfileScale};

/// A profile with the name of its row and its CPU time per request.
#[derive(Clone)]
pub(crate) struct FlameSide<'r> {
    pub(crate) name: String,
    pub(crate) profile: &'r ProfileRecord,
    pub(crate) cpu_us: f64,
}

/// The width of a drawing.
pub(super) const WIDTH: f64 = 960.0;
/// The height of a frame with the gap above it, and of a line of text above a graph.
const FRAME: usize = 16;
pub(super) const HEAD: usize = 26;
/// The width of a character.
const CHARACTER: f64 = 6.65;
/// The longest name in a tooltip, in characters.
const NAME_MAX: usize = 120;

/// One of the graphs, with its frames placed.
pub(super) struct FlamePanel<'r> {
    /// 0: the baseline, 1: the row.
    side: usize,
    scales: [ProfileScale; 2],
    px_per_us: f64,
    width_min: f64,
    /// The CPU time of the baseline, if there is one.
    baseline_us: Option<f64>,
    frames: Vec<PlacedFrame<'r>>,
}

/// A box, from the left and from the bottom.
struct PlacedFrame<'r> {
    x: f64,
    width: f64,
    level: usize,
    class: &'static str,
    name: &'r str,
    /// What its tooltip says after the name.
    told: String,
}

impl<'r> FlamePanel<'r> {
    pub(super) fn new(
        side: usize,
        scales: [ProfileScale; 2],
        px_per_us: f64,
        width_min: f64,
        baseline_us: Option<f64>,
        root: &FrameNode<'r>,
    ) -> Self {
        let frames = Vec::new();
        let mut panel = Self { side, scales, px_per_us, width_min, baseline_us, frames };
        panel.place(root, 0.0, 0);
        panel
    }

    /// Draws the graph below `y`, and moves `y` to its bottom.
    pub(super) fn draw(&self, side: &FlameSide<'_>, y: &mut usize, text: &mut String) {
        text.push_str(&self.head(side, *y + HEAD - 10));
        let levels = self.frames.iter().map(|frame| frame.level + 1).max().unwrap_or(0);
        *y += HEAD + levels * FRAME;
        self.frames.iter().for_each(|frame| frame.draw(*y, text));
    }

    fn place(&mut self, node: &FrameNode<'r>, x: f64, level: usize) {
        let us = self.scales[self.side].us(node.samples[self.side]);
        let width = us * self.px_per_us;
        if width < self.width_min {
            return;
        }
        let (class, told) = match self.baseline_us {
            None => (module_class(node), format!("{us:.2} us")),
            Some(baseline_us) => self.compared(node, baseline_us),
        };
        let name = node.function.map_or("all", |function| &function.name);
        self.frames.push(PlacedFrame { x, width, level, class, name, told });
        let mut x = x;
        for child in &node.children {
            self.place(child, x, level + 1);
            x += self.scales[self.side].us(child.samples[self.side]) * self.px_per_us;
        }
    }

    fn compared(&self, node: &FrameNode<'_>, baseline_us: f64) -> (&'static str, String) {
        let ([before, after], [baseline, row]) = (node.samples, self.scales);
        let difference = CostDifference::of((after, row), (before, baseline));
        let (before, after) = (baseline.us(before), row.us(after));
        let told = format!("{after:.2} us, baseline {before:.2} us: {}", difference.told());
        (difference_class(difference, baseline_us), told)
    }

    /// The line above the graph: the row, its CPU time, and a bar of a round length.
    fn head(&self, side: &FlameSide<'_>, y: usize) -> String {
        let is_baseline = self.side == 0;
        let what = if is_baseline { " (the baseline)" } else { "" };
        let name = escaped(&side.name);
        let us = round_length(WIDTH / 8.0 / self.px_per_us);
        let left = WIDTH - us * self.px_per_us;
        format!(
            "<text class=\"head\" x=\"0\" y=\"{y}\">{name}{what}: {:.2} us of CPU time per request\
             </text>\n<line x1=\"{left:.1}\" x2=\"{WIDTH}\" y1=\"{bar}\" y2=\"{bar}\"/>\
             <text x=\"{:.1}\" y=\"{y}\" text-anchor=\"end\">{us} us</text>\n",
            side.cpu_us,
            left - 6.0,
            bar = y - 4,
        )
    }
}

impl PlacedFrame<'_> {
    fn draw(&self, bottom: usize, text: &mut String) {
        let Self { x, width, level, class, told, .. } = self;
        let top = bottom - (level + 1) * FRAME;
        let name: String = self.name.chars().take(NAME_MAX).collect();
        let label = label(self.name, ((width - 6.0) / CHARACTER).max(0.0) as usize);
        let label = label.map_or_else(String::new, |label| {
            format!("<text x=\"{:.1}\" y=\"{}\">{}</text>", x + 3.0, top + 12, escaped(&label))
        });
        text.push_str(&format!(
            "<g><title>{}: {told}</title><rect class=\"{class}\" x=\"{x:.1}\" y=\"{top}\" \
             width=\"{width:.1}\" height=\"{FRAME}\"/>{label}</g>\n",
            escaped(&name)
        ));
    }
}

fn module_class(node: &FrameNode<'_>) -> &'static str {
    match node.function {
        Some(function) if function.is_kernel() => "kernel",
        Some(function) if function.module.contains(".so") => "library",
        _ => "own",
    }
}

/// From these shares of the baseline's CPU time on, a difference has a stronger colour.
const STRONGER: [f64; 2] = [0.01, 0.05];

fn difference_class(difference: CostDifference, baseline_us: f64) -> &'static str {
    if !difference.is_sure() {
        return "same";
    }
    let share = difference.us.abs() / baseline_us.max(f64::MIN_POSITIVE);
    let stronger = STRONGER.iter().filter(|least| share >= **least).count();
    let classes = match difference.us > 0.0 {
        true => ["more1", "more2", "more3"],
        false => ["less1", "less2", "less3"],
    };
    classes[stronger]
}

/// The largest of 1, 2, 5, 10, 20 ... (or 0.5, 0.2 ...) that is not above `most`.
fn round_length(most: f64) -> f64 {
    if !most.is_normal() {
        return 1.0;
    }
    let power = 10_f64.powf(most.log10().floor());
    [5.0, 2.0].into_iter().map(|digit| digit * power).find(|us| *us <= most).unwrap_or(power)
}

/// A name, or its last parts, in this many characters; `None` without room for one.
fn label(name: &str, room: usize) -> Option<String> {
    const LEAST: usize = 3;
    let name = name.trim_end_matches("::{{closure}}");
    let starts = std::iter::once(0).chain(name.match_indices("::").map(|(at, _)| at + 2));
    let parts: Vec<&str> = starts.map(|at| &name[at..]).collect();
    if let Some(whole) = parts.iter().find(|part| part.chars().count() <= room) {
        return Some((*whole).to_owned());
    }
    let last = parts.last().filter(|_| room >= LEAST)?;
    Some(last.chars().take(room - 1).chain(['\u{2026}']).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_fit_their_frames() {
        let label = |name: &str, room| label(name, room).unwrap_or_default();
        assert_eq!(label("http::h1::serve::{{closure}}", 15), "http::h1::serve");
        assert_eq!(label("http::h1::serve", 14), "h1::serve");
        assert_eq!(label("http::h1::serve", 4), "ser\u{2026}");
        assert_eq!(label("tcp_sendmsg", 5), "tcp_\u{2026}");
        assert_eq!(label("tcp_sendmsg", 2), "");
        assert_eq!([round_length(7.0), round_length(0.3), round_length(0.0)], [5.0, 0.2, 1.0]);
    }
}
