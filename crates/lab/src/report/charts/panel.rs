//! A panel of a chart: measured points and a curve with its band, over a logarithmic number.
//!
//! As in rows, horizontal positions are per cent, so that text keeps its size in every width. Only
//! the band is stretched, because a polygon has no per cent.

use statistics::Interval;

use super::super::markup::escaped;
use super::scale::ChartScale;

/// A plot with a line of text above it.
pub(super) struct ChartPanel {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) points: Vec<PanelPoint>,
    pub(super) curve: Vec<PanelPoint>,
    /// Where the curve begins to be dashed.
    pub(super) solid_to: f64,
    /// A number to mark.
    pub(super) mark: Option<f64>,
}

/// A number and its value.
pub(super) struct PanelPoint {
    pub(super) at: f64,
    pub(super) value: Interval,
}

/// Pixels from panel to panel.
pub(super) const PANEL: usize = 224;
/// The height of the plot, and its distance from the top of the panel.
const PLOT: f64 = 160.0;
const TOP: usize = 30;
/// The plot's left end and width in per cent; the values of the axis are left of it.
const LEFT: usize = 9;
const WIDTH: usize = 90;

impl ChartPanel {
    /// The panel of this number from the top.
    pub(super) fn drawing(&self, number: usize) -> String {
        let all = self.points.iter().chain(&self.curve);
        let across = ChartScale::logarithmic(&all.map(|point| point.at).collect::<Vec<_>>());
        let up = PanelHeight::of(self);
        format!(
            "<svg class=\"level\" y=\"{}\">\
             <text y=\"13\">{} <tspan x=\"100%\">{}</tspan></text>\n\
             <svg x=\"{LEFT}%\" y=\"{TOP}\" width=\"{WIDTH}%\" height=\"{PLOT}\">\n\
             {}{}{}{}{}</svg>\n</svg>\n",
            number * PANEL,
            escaped(&self.name),
            escaped(&self.value),
            up.axis(),
            self.numbers(&across),
            self.band(&across, &up),
            self.line(&across, &up),
            self.dots(&across, &up),
        )
    }

    /// The measured numbers below the plot, and the marked one.
    fn numbers(&self, across: &ChartScale) -> String {
        let number = |point: &PanelPoint| {
            let at = across.at(point.at);
            format!("<text x=\"{at:.1}%\" y=\"{}\">{}</text>\n", PLOT + 17.0, point.at)
        };
        let numbers: String = self.points.iter().map(number).collect();
        let mark = |at: f64| {
            format!("<line class=\"plain\" x1=\"{at:.1}%\" x2=\"{at:.1}%\" y2=\"{PLOT}\"/>\n")
        };
        let mark = self.mark.map_or_else(String::new, |number| mark(across.at(number)));
        format!("<g class=\"axis\">\n{numbers}{mark}</g>\n")
    }

    fn band(&self, across: &ChartScale, up: &PanelHeight) -> String {
        let place = |at: f64, value: f64| format!("{:.2},{:.1}", across.at(at), up.at(value));
        let upper = self.curve.iter().map(|point| place(point.at, point.value.high));
        let lower = self.curve.iter().rev().map(|point| place(point.at, point.value.low));
        let places: Vec<String> = upper.chain(lower).collect();
        format!(
            "<svg width=\"100%\" height=\"{PLOT}\" viewBox=\"0 0 100 {PLOT}\" \
             preserveAspectRatio=\"none\"><polygon class=\"band\" points=\"{}\"/></svg>\n",
            places.join(" ")
        )
    }

    /// The curve; beyond `solid_to`, only every other piece of it.
    fn line(&self, across: &ChartScale, up: &PanelHeight) -> String {
        let piece = |(number, ends): (usize, &[PanelPoint])| {
            let [from, to] = ends else { return String::new() };
            if to.at > self.solid_to * 1.001 && number % 2 == 0 {
                return String::new();
            }
            let [x1, x2] = [from, to].map(|end| across.at(end.at));
            let [y1, y2] = [from, to].map(|end| up.at(end.value.value));
            format!("<line x1=\"{x1:.2}%\" y1=\"{y1:.1}\" x2=\"{x2:.2}%\" y2=\"{y2:.1}\"/>\n")
        };
        self.curve.windows(2).enumerate().map(piece).collect()
    }

    /// The measured points with their intervals.
    fn dots(&self, across: &ChartScale, up: &PanelHeight) -> String {
        let dot = |PanelPoint { at, value }: &PanelPoint| {
            let at = across.at(*at);
            let [y, low, high] = [value.value, value.low, value.high].map(|value| up.at(value));
            format!(
                "<line x1=\"{at:.1}%\" x2=\"{at:.1}%\" y1=\"{low:.1}\" y2=\"{high:.1}\"/>\
                 <circle cx=\"{at:.1}%\" cy=\"{y:.1}\" r=\"4\"/>\n"
            )
        };
        self.points.iter().map(dot).collect()
    }
}

/// The vertical axis, from 0 at the bottom.
struct PanelHeight {
    most: f64,
    ticks: Vec<f64>,
}

impl PanelHeight {
    fn of(panel: &ChartPanel) -> Self {
        let all = panel.points.iter().chain(&panel.curve).map(|point| point.value.high);
        let most = all.filter(|value| value.is_finite()).fold(0.0, f64::max).max(1e-9) * 1.05;
        // Every other tick: lines need more room than columns.
        let ticks = ChartScale::linear(&[0.0, most]).ticks();
        let shown = ticks.into_iter().filter(|tick| (0.0..=most).contains(tick)).step_by(2);
        Self { most, ticks: shown.collect() }
    }

    fn at(&self, value: f64) -> f64 {
        PLOT * (1.0 - (value / self.most).clamp(0.0, 1.0))
    }

    fn axis(&self) -> String {
        let tick = |value: &f64| {
            let y = self.at(*value);
            format!(
                "<line class=\"plain\" x2=\"100%\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text class=\"side\" x=\"-8\" y=\"{:.1}\">{}</text>\n",
                y + 4.0,
                short(*value)
            )
        };
        self.ticks.iter().map(tick).collect()
    }
}

/// A number in little room: `500`, `20k`, `1.5M`.
fn short(value: f64) -> String {
    match value {
        _ if value < 1e4 => format!("{value}"),
        _ if value < 1e6 => format!("{}k", value / 1e3),
        _ => format!("{}M", value / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel() -> ChartPanel {
        let point = |at: f64, value: f64| PanelPoint {
            at,
            value: Interval { value, low: value * 0.9, high: value * 1.1 },
        };
        ChartPanel {
            name: "<a>".to_owned(),
            value: "b".to_owned(),
            points: vec![point(1.0, 10_000.0), point(2.0, 19_000.0)],
            curve: (0..9).map(|at| point(2_f64.powf(f64::from(at) / 4.0), 15_000.0)).collect(),
            solid_to: 2.0,
            mark: Some(1.5),
        }
    }

    #[test]
    fn a_curve_is_dashed_beyond_what_was_measured() {
        let drawn = panel().drawing(1);
        // Four solid pieces and two of four dashed ones, two points, three ticks and the mark.
        assert_eq!(drawn.matches("<line").count(), 4 + 2 + 2 + 3 + 1, "{drawn}");
        assert!(drawn.starts_with("<svg class=\"level\" y=\"224\"><text y=\"13\">&lt;a&gt; "));
        assert!(drawn.contains(">20k</text>"), "{drawn}");
    }

    #[test]
    fn the_axis_begins_at_0() {
        let up = PanelHeight::of(&panel());
        assert_eq!((up.at(0.0), up.ticks[0]), (PLOT, 0.0));
        assert!(up.at(20_900.0) > 0.0 && up.at(f64::INFINITY) == 0.0);
    }
}
