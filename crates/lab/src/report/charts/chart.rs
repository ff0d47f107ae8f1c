//! A chart of rows: each has a name, its value as text, and marks on a common axis below them.
//!
//! Horizontal positions are per cent, so that the drawing fits the width of the page or file that
//! it is put into while its text keeps its size.

use super::super::markup::escaped;
use super::plot::ChartPlot;
use super::scale::ChartScale;

/// The style of drawings, both in the page and in files.
pub(crate) const STYLE: &str = include_str!("chart.css");

/// A chart; the drawing is made on demand.
pub(crate) struct ReportChart {
    /// The name of the chart's own file.
    pub(crate) file: String,
    pub(crate) caption: String,
    rows: Vec<ChartRow>,
    ticks: Vec<ChartTick>,
    /// The content of a chart without rows.
    plot: Option<ChartPlot>,
}

/// A row of a chart.
pub(super) struct ChartRow {
    pub(super) name: String,
    pub(super) value: String,
    /// The CSS class of the marks, which decides their colour.
    pub(super) class: &'static str,
    /// Both ends of the line, in per cent; `None` without data.
    pub(super) line: Option<(f64, f64)>,
    /// The dots from left to right, in per cent.
    pub(super) dots: Vec<f64>,
}

/// A tick of the axis.
struct ChartTick {
    at: f64,
    text: String,
    /// `zero` at the value that marks are compared with, otherwise `grid`.
    class: &'static str,
}

/// Pixels from row to row; also the period of the dashes in the style's grid, which leave out the
/// text of each row.
const ROW: usize = 36;
/// The distance from the top of a row to its marks.
const MARKS: usize = 26;
/// The height of the axis.
const AXIS: usize = 20;
/// The width of a chart's own file.
const WIDTH: usize = 800;
/// The margin of a chart's own file, and the height of its caption.
const MARGIN: usize = 16;
const CAPTION: usize = 32;

impl ReportChart {
    /// `unit` formats the axis' values; `origin` is the value that marks are compared with, which
    /// gets a line of its own.
    pub(super) fn new(
        file: String,
        caption: String,
        scale: &ChartScale,
        unit: fn(f64) -> String,
        origin: Option<f64>,
        rows: Vec<ChartRow>,
    ) -> Self {
        let tick = |value: f64| ChartTick {
            at: scale.at(value),
            text: unit(value),
            class: if Some(value) == origin { "zero" } else { "grid" },
        };
        let ticks = scale.ticks().into_iter().map(tick).collect();
        Self { file, caption, rows, ticks, plot: None }
    }

    pub(super) fn of_plot(file: String, caption: String, plot: ChartPlot) -> Self {
        Self { file, caption, rows: Vec::new(), ticks: Vec::new(), plot: Some(plot) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.plot.is_none()
    }

    /// The chart as a standalone file with its own background.
    pub(crate) fn svg_file(&self) -> String {
        let (height, inner) = (CAPTION + self.height() + MARGIN / 2, WIDTH - 2 * MARGIN);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
             viewBox=\"0 0 {WIDTH} {height}\">\n<style>\n{STYLE}</style>\n\
             <rect class=\"paper\" width=\"100%\" height=\"100%\" rx=\"6\"/>\n\
             <text x=\"{MARGIN}\" y=\"22\">{}</text>\n{}</svg>\n",
            escaped(&self.caption),
            self.drawing(&format!("x=\"{MARGIN}\" y=\"{CAPTION}\" width=\"{inner}\"")),
        )
    }

    /// The chart without caption and style; `placed` contains the attributes that place it.
    pub(crate) fn drawing(&self, placed: &str) -> String {
        let rows: String = self.rows.iter().enumerate().map(|(at, row)| row.drawing(at)).collect();
        let content = match &self.plot {
            Some(plot) => plot.drawing(),
            None => self.axis() + &rows,
        };
        format!("<svg {placed} height=\"{}\">\n{content}</svg>\n", self.height())
    }

    fn height(&self) -> usize {
        self.plot.as_ref().map_or(self.rows.len() * ROW + AXIS, ChartPlot::height)
    }

    /// The grid behind the rows, and the values below them.
    fn axis(&self) -> String {
        let bottom = self.rows.len() * ROW;
        let tick = |ChartTick { at, text, class }: &ChartTick| {
            format!(
                "<line class=\"{class}\" x1=\"{at:.1}%\" x2=\"{at:.1}%\" y2=\"{bottom}\"/>\
                 <text x=\"{at:.1}%\" y=\"{}\">{}</text>\n",
                bottom + 14,
                escaped(text)
            )
        };
        format!("<g class=\"axis\">\n{}</g>\n", self.ticks.iter().map(tick).collect::<String>())
    }
}

impl ChartRow {
    /// The first dot is the largest.
    fn drawing(&self, at: usize) -> String {
        let line = self.line.map_or_else(String::new, |(low, high)| {
            format!("<line x1=\"{low:.1}%\" x2=\"{high:.1}%\"/>")
        });
        let dot = |(place, at): (usize, &f64)| {
            let radius = if place == 0 { 5 } else { 3 };
            format!("<circle cx=\"{at:.1}%\" r=\"{radius}\"/>")
        };
        let dots: String = self.dots.iter().enumerate().map(dot).collect();
        format!(
            "<svg class=\"{}\" y=\"{}\"><text y=\"-11\">{} \
             <tspan x=\"100%\">{}</tspan></text>{line}{dots}</svg>\n",
            self.class,
            at * ROW + MARKS,
            escaped(&self.name),
            escaped(&self.value),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::all;
    use crate::testing::record;

    #[test]
    fn a_file_is_drawn_as_expected() {
        let chart = &all(&record(8))[0];
        assert_eq!(chart.file, "study-weir-rate.svg");
        assert_eq!(chart.svg_file(), include_str!("expected.svg"));
    }

    #[test]
    fn a_row_is_one_element_with_its_interval() {
        for chart in all(&record(8)).iter().filter(|chart| chart.plot.is_none()) {
            let file = chart.svg_file();
            let rows =
                file.lines().filter(|line| line.starts_with("<svg class=")).collect::<Vec<_>>();
            assert_eq!(rows.len(), chart.rows.len());
            let has_marks = |row: &&str| row.contains("<line x1=") && row.contains("<circle cx=");
            assert!(rows.iter().all(has_marks), "{file}");
        }
    }

    #[test]
    fn a_file_is_standalone() {
        let mut record = record(8);
        record.study.rows.iter_mut().for_each(|row| row.name = "\"><script>\u{1b}".to_owned());
        for chart in all(&record) {
            let file = chart.svg_file();
            let rest = file.replacen("xmlns=\"http://www.w3.org/2000/svg\"", "", 1);
            for part in ["http", "href", "url(", "@import", "<script", "\u{1b}"] {
                assert!(!rest.contains(part), "{part:?} in {file}");
            }
        }
    }
}
