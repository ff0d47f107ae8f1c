//! Shares of requests as lines of `split_clients`.

use super::ConfText;

/// A hundredth of a percent, the smallest share that `split_clients` knows.
const SHARES: u64 = 10_000;

/// Gives `variable` one of the values for each value of `key`, in proportion to the weights, whose
/// sum must not be 0.
pub(crate) fn split(out: &mut ConfText, key: &str, variable: &str, values: &[(u64, String)]) {
    let values: Vec<_> = values.iter().filter(|(weight, _)| *weight > 0).collect();
    let total: u64 = values.iter().map(|(weight, _)| weight).sum();
    out.block(format!("split_clients {key} ${variable}"), |out| {
        let (mut seen, mut given) = (0, 0);
        for (number, (weight, value)) in values.iter().enumerate() {
            seen += weight;
            if number + 1 == values.len() {
                out.line(format!("* {value}"));
                break;
            }
            let until = seen * SHARES / total;
            let share = until - given;
            given = until;
            if share > 0 {
                out.line(format!("{}.{:02}% {value}", share / 100, share % 100));
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(weights: &[u64]) -> Vec<String> {
        let values: Vec<_> = weights.iter().map(|weight| (*weight, format!("v{weight}"))).collect();
        let mut out = ConfText::default();
        split(&mut out, "$request_id", "x", &values);
        out.as_str().lines().map(|line| line.trim().to_owned()).collect()
    }

    #[test]
    fn shares_are_in_proportion_and_the_last_one_has_the_rest() {
        assert_eq!(
            lines(&[70, 30]),
            ["split_clients $request_id $x {", "70.00% v70;", "* v30;", "}"]
        );
        assert_eq!(lines(&[1, 1, 1])[1..3], ["33.33% v1;", "33.33% v1;"]);
        assert_eq!(lines(&[0, 5])[1..], ["* v5;", "}"]);
        assert_eq!(lines(&[1, 1_000_000])[1..], ["* v1000000;", "}"]);
    }
}
