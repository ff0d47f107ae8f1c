//! Effects with their intervals, one row each: a forest plot.

use statistics::Interval;

use super::chart::{ChartRow, ReportChart};
use super::scale::ChartScale;
use crate::effect::told;

/// The effect of one row.
pub(super) struct ShownEffect {
    pub(super) name: String,
    pub(super) ratio: Option<Interval>,
}

/// From this ratio on the axis is logarithmic: a linear one would hide small effects beside large
/// ones.
const LARGE: f64 = 2.0;

/// The axis of a chart of effects.
enum EffectAxis {
    /// An axis in per cent.
    Linear(ChartScale),
    /// An axis of ratios: half and double are equally far from no change.
    Logarithmic(ChartScale),
}

/// A chart of effects; `more_is_better` decides their colours.
pub(super) fn chart(
    file: String,
    caption: String,
    effects: &[ShownEffect],
    more_is_better: bool,
) -> ReportChart {
    let axis = EffectAxis::of(effects);
    // The line is the interval, and the dot the effect.
    let row = |effect: &ShownEffect| ChartRow {
        name: effect.name.clone(),
        value: told(effect.ratio),
        class: effect.ratio.map_or("none", |ratio| class(ratio, more_is_better)),
        line: effect.ratio.map(|ratio| (axis.at(ratio.low), axis.at(ratio.high))),
        dots: effect.ratio.iter().map(|ratio| axis.at(ratio.value)).collect(),
    };
    let rows = effects.iter().map(row).collect();
    let (scale, unit, origin): (_, fn(f64) -> String, _) = match &axis {
        EffectAxis::Linear(scale) => (scale, unit, 0.0),
        EffectAxis::Logarithmic(scale) => (scale, |ratio| unit(percent(ratio)), 1.0),
    };
    ReportChart::new(file, caption, scale, unit, Some(origin), rows)
}

impl EffectAxis {
    fn of(effects: &[ShownEffect]) -> Self {
        let intervals = effects.iter().filter_map(|effect| effect.ratio);
        let ends: Vec<f64> = intervals.flat_map(|ratio| [ratio.low, ratio.high]).collect();
        let ends: Vec<f64> = ends.into_iter().chain([1.0]).collect();
        match ends.iter().any(|end| *end >= LARGE || *end <= 1.0 / LARGE) {
            true => Self::Logarithmic(ChartScale::logarithmic(&ends)),
            false => {
                let ends: Vec<f64> = ends.into_iter().map(percent).collect();
                Self::Linear(ChartScale::linear(&ends))
            }
        }
    }

    fn at(&self, ratio: f64) -> f64 {
        match self {
            Self::Linear(scale) => scale.at(percent(ratio)),
            Self::Logarithmic(scale) => scale.at(ratio),
        }
    }
}

fn class(ratio: Interval, more_is_better: bool) -> &'static str {
    match (ratio.excludes(1.0), (ratio.value > 1.0) == more_is_better) {
        (false, _) => "none",
        (true, true) => "better",
        (true, false) => "worse",
    }
}

fn percent(ratio: f64) -> f64 {
    (ratio - 1.0) * 100.0
}

fn unit(percent: f64) -> String {
    // Short axes have ticks between whole numbers.
    let digits = usize::from(percent.fract().abs() > 0.01);
    if percent == 0.0 { "0 %".to_owned() } else { format!("{percent:+.digits$} %") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(low: f64, high: f64, more_is_better: bool) -> String {
        let ratio = Some(Interval { value: (low + high) / 2.0, low, high });
        drawn_of(ratio, more_is_better)
    }

    fn drawn_of(ratio: Option<Interval>, more_is_better: bool) -> String {
        let effects = [ShownEffect { name: "a".to_owned(), ratio }];
        chart(String::new(), String::new(), &effects, more_is_better).drawing("")
    }

    #[test]
    fn colours_show_better_and_worse() {
        assert!(drawn(1.1, 1.2, true).contains("class=\"better\""));
        assert!(drawn(1.1, 1.2, false).contains("class=\"worse\""));
        assert!(drawn(0.8, 0.9, false).contains("class=\"better\""));
        assert!(drawn(0.9, 1.2, true).contains("class=\"none\""));
    }

    #[test]
    fn large_effects_leave_room_for_small_ones() {
        let small = drawn(1.1, 1.2, true);
        assert!(small.contains(">+20 %</text>") || small.contains(">+10 %</text>"), "{small}");
        let large = drawn(0.05, 12.0, true);
        for tick in [">-90 %</text>", ">0 %</text>", ">+900 %</text>", "class=\"zero\""] {
            assert!(large.contains(tick), "{tick} in {large}");
        }
    }

    #[test]
    fn a_row_without_an_effect_has_no_marks() {
        let drawn = drawn_of(None, true);
        assert!(drawn.contains("too few turns") && !drawn.contains("<circle"), "{drawn}");
    }

    #[test]
    fn ticks_are_in_per_cent() {
        assert_eq!([unit(0.0), unit(-20.0), unit(0.5)], ["0 %", "-20 %", "+0.5 %"]);
    }
}
