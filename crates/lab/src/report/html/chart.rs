//! A chart of rows: a name, marks on a common axis, and the value in words.
//!
//! Each row is a drawing of its own whose positions are per cent, so that a chart fits any width
//! and its text keeps its size.

use std::fmt::Write as _;

use super::markup::escaped;
use super::scale::ChartScale;

/// A row of a chart.
pub(super) struct ChartRow {
    pub(super) name: String,
    /// SVG elements; the middle of a row is at [`MIDDLE`].
    pub(super) marks: String,
    pub(super) value: String,
}

/// The vertical middle of a row, in pixels.
pub(super) const MIDDLE: u32 = 14;

/// A chart with its caption. `unit` says how the axis tells its ticks, `origin` where among them
/// the line stands that marks are compared with.
pub(super) fn figure(
    caption: &str,
    scale: &ChartScale,
    unit: fn(f64) -> String,
    origin: Option<f64>,
    rows: &[ChartRow],
) -> String {
    let grid = grid(scale, origin);
    let mut html = format!("<figure><figcaption>{}</figcaption>\n", escaped(caption));
    for row in rows {
        let (name, value) = (escaped(&row.name), escaped(&row.value));
        // Writing to a string does not fail.
        let _ = writeln!(
            html,
            "<div class=\"row\"><span class=\"name\">{name}</span>\
             <svg role=\"img\" aria-label=\"{name}: {value}\"><title>{name}: {value}</title>\
             {grid}{}</svg><span class=\"value\">{value}</span></div>",
            row.marks
        );
    }
    html + &axis(scale, unit) + "</figure>\n"
}

fn grid(scale: &ChartScale, origin: Option<f64>) -> String {
    let line = |tick: &f64| {
        let at = scale.at(*tick);
        let class = if Some(*tick) == origin { "zero" } else { "grid" };
        format!("<line class=\"{class}\" x1=\"{at:.2}%\" x2=\"{at:.2}%\" y1=\"0\" y2=\"28\"/>")
    };
    scale.ticks().iter().map(line).collect()
}

fn axis(scale: &ChartScale, unit: fn(f64) -> String) -> String {
    let text = |tick: &f64| {
        format!("<text x=\"{:.2}%\" y=\"14\">{}</text>", scale.at(*tick), escaped(&unit(*tick)))
    };
    let ticks: String = scale.ticks().iter().map(text).collect();
    format!("<div class=\"row axis\" aria-hidden=\"true\"><svg>{ticks}</svg></div>\n")
}
