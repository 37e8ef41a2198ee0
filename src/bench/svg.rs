//! Charts, as SVG that needs nothing else: readable on a light and on a dark page.

use std::fmt::Write;

/// Values of one thing.
#[derive(Debug, Clone, PartialEq)]
pub struct Bars {
    /// Its name.
    pub name: String,
    /// Words and values.
    pub values: Vec<(&'static str, f64)>,
}

/// A line.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Across and up.
    pub points: Vec<(f64, f64)>,
    /// Whether across is logarithmic.
    pub log: bool,
    /// Words at places across.
    pub marks: Vec<(f64, String)>,
}

impl Curve {
    /// The share, in per cent, that is at most each value.
    pub fn shares(buckets: &[(f64, f64)]) -> Curve {
        let all: f64 = buckets.iter().map(|(_, count)| count).sum();
        let mut so_far = 0.0;
        let points = buckets.iter().map(|(value, count)| {
            so_far += count;
            (*value, so_far / all.max(1.0) * 100.0)
        });
        Curve { points: points.collect(), log: true, marks: Vec::new() }
    }
}

const WIDTH: f64 = 760.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 70.0;
const COLOURS: [&str; 3] = ["#4878a8", "#d08030", "#b04050"];

fn escape(text: &str) -> String {
    crate::text::line(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn open(height: f64, title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" font-family=\"sans-serif\" \
         font-size=\"12\"><title>{0}</title><rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\
         <text x=\"12\" y=\"20\" font-size=\"14\" fill=\"#202020\">{0}</text>\n",
        escape(title)
    )
}

/// Bars on a logarithmic scale, the same for all.
pub fn bars(title: &str, all: &[Bars]) -> String {
    let rows: usize = all.iter().map(|one| one.values.len()).sum();
    let height = 50.0 + 14.0 * rows as f64 + 8.0 * all.len() as f64;
    let mut out = open(height, title);
    let values = || all.iter().flat_map(|one| one.values.iter().map(|(_, value)| value.max(1e-3)));
    let least = values().fold(f64::MAX, f64::min).min(1.0) / 2.0;
    let most = values().fold(least * 4.0, f64::max);
    let width = |value: f64| {
        let share = (value.max(least) / least).ln() / (most / least).ln();
        share.clamp(0.002, 1.0) * (WIDTH - LEFT - RIGHT)
    };
    let mut y = 34.0;
    for one in all {
        // Writing to a string cannot fail.
        let name: String = one.name.chars().take(26).collect();
        let _ = writeln!(out, "<text x=\"12\" y=\"{:.0}\" fill=\"#202020\">{}</text>", y + 10.0, escape(&name));
        for ((word, value), colour) in one.values.iter().zip(COLOURS.iter().cycle()) {
            let wide = width(*value);
            let _ = writeln!(
                out,
                "<rect x=\"{LEFT}\" y=\"{y:.0}\" width=\"{wide:.1}\" height=\"11\" fill=\"{colour}\"/>\
                 <text x=\"{:.1}\" y=\"{:.0}\" font-size=\"10\" fill=\"#404040\">{word} {value:.2}</text>",
                LEFT + wide + 4.0,
                y + 10.0
            );
            y += 14.0;
        }
        y += 8.0;
    }
    out.push_str("</svg>\n");
    out
}

/// A line with its marks.
pub fn curve(title: &str, of: &Curve) -> String {
    let (height, top, bottom, left) = (300.0, 40.0, 40.0, 60.0);
    let mut out = open(height, title);
    let across = |value: f64| if of.log { value.max(1e-3).ln() } else { value };
    let from = of.points.iter().map(|(x, _)| across(*x)).fold(f64::MAX, f64::min);
    let to = of.points.iter().map(|(x, _)| across(*x)).fold(f64::MIN, f64::max).max(from + 1e-9);
    let from = if of.log { from } else { 0.0 };
    let highest = of.points.iter().map(|(_, y)| *y).fold(1e-9, f64::max);
    let x = |value: f64| left + (across(value) - from) / (to - from) * (WIDTH - left - 30.0);
    let y = |value: f64| height - bottom - value / highest * (height - top - bottom);
    // Writing to a string cannot fail.
    for share in [0.0, 0.5, 1.0] {
        let (value, at) = (highest * share, y(highest * share));
        let _ = writeln!(
            out,
            "<line x1=\"{left}\" x2=\"{:.0}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#d0d0d0\"/>\
             <text x=\"8\" y=\"{:.1}\" font-size=\"10\" fill=\"#404040\">{value:.0}</text>",
            WIDTH - 30.0,
            at + 4.0
        );
    }
    for (at, _) in [of.points.first(), of.points.get(of.points.len() / 2), of.points.last()].into_iter().flatten() {
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.0}\" font-size=\"10\" fill=\"#404040\" text-anchor=\"middle\">{at:.2}</text>",
            x(*at),
            height - 22.0
        );
    }
    for (at, word) in &of.marks {
        let at = x(*at);
        let _ = writeln!(
            out,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{top}\" y2=\"{:.0}\" stroke=\"#b04050\" stroke-dasharray=\"3 3\"/>\
             <text x=\"{:.1}\" y=\"{:.0}\" font-size=\"10\" fill=\"#b04050\">{}</text>",
            height - bottom,
            at + 3.0,
            top + 8.0,
            escape(word)
        );
    }
    let points: Vec<String> = of.points.iter().map(|(a, b)| format!("{:.1},{:.1}", x(*a), y(*b))).collect();
    let _ = writeln!(
        out,
        "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"2\" points=\"{}\"/></svg>",
        COLOURS[0],
        points.join(" ")
    );
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]
    use super::*;

    #[test]
    fn shares_grow_to_a_hundred() {
        let curve = Curve::shares(&[(1.0, 1.0), (2.0, 2.0), (9.0, 1.0)]);
        assert_eq!(curve.points, [(1.0, 25.0), (2.0, 75.0), (9.0, 100.0)]);
    }

    #[test]
    fn names_cannot_break_out() {
        let out = bars("a < b & \"c\"", &[Bars { name: "</svg><script>".to_owned(), values: vec![("p50", 1.0)] }]);
        assert!(!out.contains("<script>") && out.contains("a &lt; b &amp; &quot;c&quot;"), "{out}");
    }
}
