//! A plot of curves over a common axis, with a line of text for each curve above it.
//!
//! Positions are per cent of the plot's width and height. Curves are drawn as short lines, because
//! a polyline cannot be placed in per cent.

use super::super::markup::escaped;

/// The most curves that can be told apart; the style has a colour for each.
pub(super) const CURVES_MAX: usize = 6;

/// Curves with both axes. Places are per cent, from the left and from the bottom.
pub(super) struct ChartPlot {
    pub(super) curves: Vec<ChartCurve>,
    pub(super) across: Vec<(f64, String)>,
    pub(super) up: Vec<(f64, String)>,
}

/// A curve, with its name and a value as text.
pub(super) struct ChartCurve {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) points: Vec<(f64, f64)>,
}

/// The height of a line of text, and of the plot.
const LINE: usize = 22;
const PLOT: usize = 260;
/// The room above the plot, and below it for the axis.
const GAP: usize = 8;
const AXIS: usize = 24;
/// The plot's left end and width in per cent; the values of the axis are left of it.
const LEFT: usize = 9;
const WIDTH: usize = 89;

impl ChartPlot {
    pub(super) fn height(&self) -> usize {
        self.top() + PLOT + AXIS
    }

    fn top(&self) -> usize {
        self.curves.len() * LINE + GAP
    }

    /// The content of the drawing.
    pub(super) fn drawing(&self) -> String {
        let numbered = || self.curves.iter().enumerate();
        let names: String = numbered().map(|(number, curve)| curve.name(number)).collect();
        let lines: String = numbered().map(|(number, curve)| curve.line(number)).collect();
        format!(
            "{names}<svg x=\"{LEFT}%\" y=\"{}\" width=\"{WIDTH}%\" height=\"{PLOT}\">\n\
             {}{}{lines}</svg>\n",
            self.top(),
            self.columns(),
            self.lines(),
        )
    }

    /// The vertical lines of the grid, with values below them.
    fn columns(&self) -> String {
        let tick = |(at, text): &(f64, String)| {
            format!(
                "<line class=\"plain\" x1=\"{at:.1}%\" x2=\"{at:.1}%\" y2=\"{PLOT}\"/>\
                 <text x=\"{at:.1}%\" y=\"{}\">{}</text>\n",
                PLOT + 17,
                escaped(text)
            )
        };
        let ticks: String = self.across.iter().map(tick).collect();
        format!("<g class=\"axis\">\n{ticks}</g>\n")
    }

    /// The horizontal lines of the grid, with values left of them.
    fn lines(&self) -> String {
        let tick = |(at, text): &(f64, String)| {
            let y = (1.0 - at / 100.0) * PLOT as f64;
            format!(
                "<line class=\"plain\" x2=\"100%\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text class=\"side\" x=\"-8\" y=\"{:.1}\">{}</text>\n",
                y + 4.0,
                escaped(text)
            )
        };
        self.up.iter().map(tick).collect()
    }
}

impl ChartCurve {
    /// The text above the plot, behind a line in the curve's colour.
    fn name(&self, number: usize) -> String {
        format!(
            "<svg class=\"curve{number}\" y=\"{}\"><line x2=\"18\" y1=\"10\" y2=\"10\"/>\
             <text x=\"26\" y=\"14\">{}</text><text class=\"side\" x=\"100%\" y=\"14\">{}</text>\
             </svg>\n",
            number * LINE,
            escaped(&self.name),
            escaped(&self.value),
        )
    }

    fn line(&self, number: usize) -> String {
        let piece = |ends: &[(f64, f64)]| {
            let [(x1, y1), (x2, y2)] = ends else { return String::new() };
            let [y1, y2] = [100.0 - y1, 100.0 - y2];
            format!("<line x1=\"{x1:.1}%\" y1=\"{y1:.1}%\" x2=\"{x2:.1}%\" y2=\"{y2:.1}%\"/>\n")
        };
        let pieces: String = self.points.windows(2).map(piece).collect();
        format!("<g class=\"curve{number}\">\n{pieces}</g>\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_curve_has_its_colour_and_its_text() {
        let curve = |name: &str, y| ChartCurve {
            name: name.to_owned(),
            value: "p99".to_owned(),
            points: vec![(0.0, y), (100.0, y)],
        };
        let plot = ChartPlot {
            curves: vec![curve("<a>", 0.0), curve("b", 75.0)],
            across: vec![(50.0, "90 %".to_owned())],
            up: vec![(100.0, "1 ms".to_owned())],
        };
        let drawn = plot.drawing();
        for part in [
            "<svg class=\"curve0\" y=\"0\"><line x2=\"18\" y1=\"10\" y2=\"10\"/>\
             <text x=\"26\" y=\"14\">&lt;a&gt;</text>",
            "<g class=\"curve0\">\n<line x1=\"0.0%\" y1=\"100.0%\" x2=\"100.0%\" y2=\"100.0%\"/>\n",
            "<g class=\"curve1\">\n<line x1=\"0.0%\" y1=\"25.0%\" x2=\"100.0%\" y2=\"25.0%\"/>\n",
            "x1=\"50.0%\"",
            "y1=\"0.0\" y2=\"0.0\"/><text class=\"side\" x=\"-8\" y=\"4.0\">1 ms</text>",
        ] {
            assert!(drawn.contains(part), "{part} in {drawn}");
        }
    }

    #[test]
    fn every_curve_has_a_colour() {
        for number in 0..CURVES_MAX {
            let rule = format!("\n.curve{number}{{color:#");
            assert_eq!(super::super::STYLE.matches(&rule).count(), 2, "light and dark: {number}");
        }
    }
}
