//! A readable page from a folder of results: Markdown, with charts as SVG files beside it.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::svg::{self, Bars, Curve};
use crate::db::error::DbError;

/// The page and its charts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Markdown.
    pub text: String,
    /// Names and contents of the charts.
    pub charts: Vec<(String, String)>,
}

/// Reads every result of a folder, in the order of their names.
pub fn read(folder: &Path) -> Result<Vec<(String, Value)>, DbError> {
    let failed = |error| DbError::io(format!("cannot read {}", folder.display()), error);
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    files.sort();
    let mut results = Vec::new();
    for path in files {
        let failed = |error| DbError::io(format!("cannot read {}", path.display()), error);
        let text = std::fs::read_to_string(&path).map_err(failed)?;
        let value: Value =
            serde_json::from_str(&text).map_err(|error| DbError::Unreadable(format!("{}: {error}", path.display())))?;
        let version = value.get("format_version").and_then(Value::as_u64);
        if version != Some(u64::from(super::result::FORMAT_VERSION)) {
            let why = format!("{} is no result of format version {}", path.display(), super::result::FORMAT_VERSION);
            return Err(DbError::Unreadable(why));
        }
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        results.push((name, value));
    }
    if results.is_empty() {
        return Err(DbError::Usage(format!("{} holds no results (*.json)", folder.display())));
    }
    Ok(results)
}

/// Makes the page. `charts` is the folder of the charts as the page names it.
pub fn page(results: &[(String, Value)], charts: &str) -> Page {
    let mut page = Page { text: String::from("# Benchmark results\n\n"), charts: Vec::new() };
    // Writing to a string cannot fail.
    let out = &mut page.text;
    let runs: Vec<&(String, Value)> =
        results.iter().filter(|(_, one)| one["soak"] != true && one["comparison"] != true).collect();
    if !runs.is_empty() {
        overview(out, &runs);
        let bars: Vec<Bars> = runs.iter().filter_map(|(name, one)| bars(name, one)).collect();
        if !bars.is_empty() {
            page.charts.push(("latency.svg".to_owned(), svg::bars("Latency, ms", &bars)));
            let _ = writeln!(out, "![Latency by scenario: p50, p95, p99]({charts}/latency.svg)\n");
        }
    }
    for (name, one) in results {
        match (one["soak"] == true, one["comparison"] == true) {
            (true, _) => soak(&mut page, name, one, charts),
            (_, true) => comparison(&mut page.text, name, one),
            _ => run(&mut page, name, one, charts),
        }
    }
    page
}

fn words(value: &Value) -> String {
    escape(value.as_str().unwrap_or("–"))
}

/// What Markdown would take for a table's border or a tag.
fn escape(text: &str) -> String {
    crate::text::line(text).replace('|', "\\|").replace('<', "&lt;")
}

fn number(value: &Value, digits: usize) -> String {
    value.as_f64().map_or_else(|| "–".to_owned(), |number| format!("{number:.digits$}"))
}

fn overview(out: &mut String, runs: &[&(String, Value)]) {
    let _ = writeln!(
        out,
        "| result | scenario | loop | connections | operations/s | p50 ms | p95 ms | p99 ms | n | criterion |\n\
         |---|---|---|---:|---:|---:|---:|---:|---:|---|"
    );
    for (name, one) in runs {
        let latency = &one["latency_ms"];
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            escape(name),
            words(&one["scenario"]),
            words(&one["pace"]),
            one["concurrency"],
            number(&one["throughput_per_s"], 1),
            number(&latency["p50"], 2),
            number(&latency["p95"], 2),
            number(&latency["p99"], 2),
            latency["n"],
            verdict(one)
        );
    }
    let _ = writeln!(
        out,
        "\nIn a closed loop latency is service time: each connection waits for its answer before it goes on. In an open \
         loop it counts from when an operation was due.\n"
    );
}

fn verdict(one: &Value) -> &'static str {
    let missed = one["targets"].as_object().is_some_and(|all| all.values().any(|target| target["met"] == false));
    let met = one.pointer("/criterion/met").and_then(Value::as_bool) == Some(true);
    match (one["complete"] == true, met, missed) {
        (false, ..) => "incomplete",
        (true, false, _) => "FAILS",
        (true, true, true) => "passes, targets missed",
        (true, true, false) => "passes",
    }
}

fn bars(name: &str, one: &Value) -> Option<Bars> {
    let latency = &one["latency_ms"];
    let values: Vec<(&'static str, f64)> = [("p50", "p50"), ("p95", "p95"), ("p99", "p99")]
        .into_iter()
        .filter_map(|(word, key)| latency[key].as_f64().map(|value| (word, value)))
        .collect();
    (!values.is_empty()).then(|| Bars { name: name.to_owned(), values })
}

fn run(page: &mut Page, name: &str, one: &Value, charts: &str) {
    let out = &mut page.text;
    let _ = writeln!(out, "## {}\n", escape(name));
    let _ = writeln!(
        out,
        "{} at {}, {} s, seed {}: **{}**. {}\n",
        words(&one["scenario"]),
        words(&one["started_at"]),
        number(&one["duration_s"], 1),
        one["seed"],
        verdict(one),
        one.pointer("/criterion/words").map_or_else(String::new, words)
    );
    for broken in one.pointer("/criterion/broken").and_then(Value::as_array).into_iter().flatten() {
        let _ = writeln!(out, "- {}", words(broken));
    }
    if let Some(failure) = one["failure"].as_str() {
        let _ = writeln!(out, "\nIncomplete: {}\n", escape(failure));
    }
    if let Some(outcomes) = one["outcomes"].as_object().filter(|all| !all.is_empty()) {
        let _ = writeln!(out, "| outcome | n | p50 ms | p95 ms | p99 ms | max ms |\n|---|---:|---:|---:|---:|---:|");
        for (label, outcome) in outcomes {
            let latency = &outcome["latency_ms"];
            let [p50, p95, p99, max] = ["p50", "p95", "p99", "max"].map(|key| number(&latency[key], 2));
            let _ = writeln!(out, "| {} | {} | {p50} | {p95} | {p99} | {max} |", escape(label), outcome["count"]);
        }
        out.push('\n');
    }
    if let Some(targets) = one["targets"].as_object().filter(|all| !all.is_empty()) {
        let _ = writeln!(out, "| target | value | aimed for | |\n|---|---:|---:|---|");
        for (label, target) in targets {
            let verdict = if target["met"] == true { "met" } else { "**missed**" };
            let (value, aim) = (number(&target["value"], 2), number(&target["target"], 2));
            let _ = writeln!(out, "| {} | {value} | {aim} | {verdict} |", escape(label));
        }
        out.push('\n');
    }
    for note in one["notes"].as_array().into_iter().flatten() {
        let _ = writeln!(out, "- {}", words(note));
    }
    environment(out, &one["environment"], &one["cpu"]);
    let buckets: Vec<(f64, f64)> = one["histogram"].as_array().into_iter().flatten().filter_map(bucket).collect();
    if buckets.len() > 3 {
        let file = format!("{}.svg", file_name(name));
        let title = format!("{name}: share of operations done within so many ms");
        page.charts.push((file.clone(), svg::curve(&title, &Curve::shares(&buckets))));
        let _ = writeln!(out, "![{}]({charts}/{file})\n", escape(&title));
    }
}

fn bucket(one: &Value) -> Option<(f64, f64)> {
    Some((one["le_us"].as_f64()? / 1000.0, one["count"].as_f64()?))
}

/// A name that is safe as a file's.
fn file_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' }).collect()
}

fn environment(out: &mut String, of: &Value, cpu: &Value) {
    let memory = of["memory_bytes"].as_f64().map_or_else(|| "–".to_owned(), |bytes| format!("{:.0} GB", bytes / 1e9));
    let settings: Vec<String> = of["settings"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()))
        .collect();
    let _ = writeln!(
        out,
        "\n{} CPUs ({}), {memory}, load average {} at the start; {}; {}. CPU seconds: this program {}, the server {}. \
         Settings: {}.\n",
        of["cpus"],
        words(&of["cpu_model"]),
        number(&of["load_average"], 1),
        words(&of["server"]),
        if of["optimized"] == true { "optimized build" } else { "**unoptimized build**" },
        number(&cpu["client_s"], 1),
        number(&cpu["server_s"], 1),
        escape(&settings.join(", "))
    );
}

fn soak(page: &mut Page, name: &str, one: &Value, charts: &str) {
    let out = &mut page.text;
    let _ = writeln!(out, "## {} (soak of {})\n\n**{}**\n", escape(name), words(&one["scenario"]), verdict(one));
    let _ = writeln!(
        out,
        "| window | s | operations/s | p50 ms | p95 ms | p99 ms | |\n|---:|---:|---:|---:|---:|---:|---|"
    );
    let mut speed = Vec::new();
    let mut elapsed = 0.0;
    for (at, window) in one["windows"].as_array().into_iter().flatten().enumerate() {
        let latency = &window["latency_ms"];
        let [p50, p95, p99] = ["p50", "p95", "p99"].map(|key| number(&latency[key], 2));
        let (seconds, rate) = (number(&window["duration_s"], 1), number(&window["throughput_per_s"], 1));
        let _ = writeln!(out, "| {} | {seconds} | {rate} | {p50} | {p95} | {p99} | {} |", at + 1, verdict(window));
        elapsed += window["duration_s"].as_f64().unwrap_or_default();
        speed.push((elapsed, window["throughput_per_s"].as_f64().unwrap_or_default()));
    }
    out.push('\n');
    let mut marks = Vec::new();
    for event in one["events"].as_array().into_iter().flatten() {
        let (began, took) = (number(&event["began_s"], 0), number(&event["took_s"], 1));
        let _ = writeln!(out, "- {} at {began} s, took {took} s", words(&event["event"]));
        if let (Some(at), Some(word)) = (event["began_s"].as_f64(), event["event"].as_str()) {
            marks.push((at, word.to_owned()));
        }
    }
    if speed.len() > 1 {
        let file = format!("{}.svg", file_name(name));
        let title = format!("{name}: operations a second, window by window");
        page.charts.push((file.clone(), svg::curve(&title, &Curve { points: speed, log: false, marks })));
        let _ = writeln!(out, "\n![{}]({charts}/{file})\n", escape(&title));
    }
}

fn comparison(out: &mut String, name: &str, one: &Value) {
    let _ = writeln!(out, "## {} (comparison, {})\n", escape(name), words(&one["scenario"]));
    let _ = writeln!(out, "a: {}; b: {}; {} rounds of a, b, a\n", words(&one["a"]), words(&one["b"]), one["rounds"]);
    let _ = writeln!(out, "| | b / a | 95% interval | a beside itself | |\n|---|---:|---|---|---|");
    for (label, ratio) in one["ratios"].as_object().into_iter().flatten() {
        let interval = |of: &Value| format!("{} to {}", number(&of["low"], 3), number(&of["high"], 3));
        let (ratio_, verdict) = (number(&ratio["ratio"], 3), words(&ratio["verdict"]));
        let noise = one["noise"].get(label).map_or_else(|| "–".to_owned(), interval);
        let _ = writeln!(out, "| {} | {ratio_} | {} | {noise} | {verdict} |", escape(label), interval(ratio));
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]
    use super::*;
    use serde_json::json;

    #[test]
    fn a_page_tells_of_every_result_and_names_its_charts() {
        let percentiles = json!({ "n": 200, "p50": 1.0, "p95": 2.0, "p99": null, "max": 9.0 });
        let buckets: Vec<Value> = (1..=9).map(|n| json!({ "le_us": n * 1000, "count": 3 })).collect();
        let run = json!({
            "scenario": "check", "pace": "closed", "concurrency": 4, "throughput_per_s": 12.5, "complete": true,
            "criterion": { "words": "right | wrong", "met": false, "broken": ["3 times timeout: <b>"] },
            "latency_ms": percentiles, "outcomes": { "ok": { "count": 200, "latency_ms": percentiles } },
            "targets": { "big": { "value": 3.0, "target": 2.0, "met": false } }, "histogram": buckets,
            "notes": ["a note"], "environment": { "cpus": 2, "optimized": true }, "seed": 1
        });
        let window = |rate: f64| {
            json!({ "duration_s": 60.0, "throughput_per_s": rate, "latency_ms": percentiles,
            "complete": true, "criterion": { "met": true } })
        };
        let soak = json!({ "soak": true, "scenario": "mixed", "complete": true, "criterion": { "met": true },
            "windows": [window(100.0), window(50.0)], "events": [{ "event": "vacuum", "began_s": 70.0, "took_s": 2.0 }] });
        let page = page(&[("first".into(), run), ("long".into(), soak)], "charts");
        for expected in ["| first | check |", "FAILS", "right \\| wrong", "&lt;b>", "**missed**", "vacuum at 70 s"] {
            assert!(page.text.contains(expected), "no {expected} in\n{}", page.text);
        }
        for (name, chart) in &page.charts {
            assert!(page.text.contains(&format!("charts/{name}")), "{name}");
            assert!(chart.starts_with("<svg") && chart.trim_end().ends_with("</svg>"), "{chart}");
            assert_eq!(chart.matches("<text").count(), chart.matches("</text>").count());
        }
        assert_eq!(page.charts.len(), 3);
    }
}
