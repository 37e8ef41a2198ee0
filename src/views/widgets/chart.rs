//! Lines of numbers over time, as one row of blocks or as a small chart.

/// One row of eighth blocks, the newest value at the right, scaled to the largest shown. Missing values are blank.
pub fn sparkline(values: &[Option<f64>], width: usize) -> String {
    const BLOCKS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
    let shown = values.get(values.len().saturating_sub(width)..).unwrap_or(values);
    let top = shown.iter().flatten().copied().fold(0.0_f64, f64::max);
    let mut out = " ".repeat(width - shown.len().min(width));
    for value in shown {
        out.push_str(match value {
            None => " ",
            Some(value) if top > 0.0 => {
                let step = ((value / top) * 7.0).round().clamp(0.0, 7.0) as usize;
                BLOCKS.get(step).copied().unwrap_or("█")
            }
            Some(_) => "▁",
        });
    }
    out
}

/// A chart of `height` rows of full blocks, the newest value at the right; the first line is the top. Missing values are
/// blank.
pub fn columns(values: &[Option<f64>], width: usize, height: usize, top: f64) -> Vec<String> {
    let shown = values.get(values.len().saturating_sub(width)..).unwrap_or(values);
    let pad = width - shown.len().min(width);
    (0..height)
        .map(|row| {
            let floor = (height - row - 1) as f64 / height as f64;
            let step = 1.0 / height as f64;
            let mut line = " ".repeat(pad);
            for value in shown {
                let share = value.map(|v| if top > 0.0 { v / top } else { 0.0 });
                line.push_str(match share {
                    Some(share) if share >= floor + step => "█",
                    Some(share) if share > floor + step / 2.0 => "▆",
                    Some(share) if share > floor => "▃",
                    Some(_) if row + 1 == height => "▁",
                    _ => " ",
                });
            }
            line
        })
        .collect()
}
