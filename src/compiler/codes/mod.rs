//! Every code there is: what it means, what to do, and a policy that makes it beside the same policy without the
//! mistake. `tests/diagnostics.rs` compiles them all, and writes `docs/codes` from them.

mod raised;
mod table;

pub use raised::raised_by;
pub use table::codes;

/// What is known about a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeInfo {
    /// Its number.
    pub code: u16,
    /// What it means, in a few words.
    pub title: &'static str,
    /// What to do.
    pub help: &'static str,
    /// A policy with the mistake and the same policy without. Only where the policy's text alone can show it.
    pub example: Option<Example>,
}

/// A mistake and its mending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Example {
    /// A policy that makes this code.
    pub bad: &'static str,
    /// The same without.
    pub good: &'static str,
}

/// What is known about a code, written `AZ304`, `az304` or `304`.
pub fn explain(code: &str) -> Option<&'static CodeInfo> {
    let digits = code.trim().trim_start_matches(['A', 'a']).trim_start_matches(['Z', 'z']);
    by_number(digits.parse().ok()?)
}

/// What is known about a code, by its number.
pub fn by_number(code: u16) -> Option<&'static CodeInfo> {
    codes().find(|info| info.code == code)
}

impl CodeInfo {
    /// `AZ304`
    pub fn name(&self) -> String {
        super::diagnostic::Code(self.code).to_string()
    }

    /// Its page, as Markdown.
    pub fn page(&self) -> String {
        let mut page = format!("# {}: {}\n\n{}\n", self.name(), self.title, self.help);
        if let Some(Example { bad, good }) = &self.example {
            page.push_str(&format!("\nThis policy has it:\n\n```\n{}\n```\n", bad.trim_matches('\n')));
            page.push_str(&format!("\nThis one does not:\n\n```\n{}\n```\n", good.trim_matches('\n')));
        }
        if let Some(raised) = raised_by(self.code) {
            page.push_str(&format!("\nThis raises it:\n\n```sql\n{raised}\n```\n"));
        }
        page
    }
}

/// Every file of `docs/codes`: its name and its text.
pub fn pages() -> Vec<(String, String)> {
    let mut index = String::from(
        "# Codes\n\nEvery finding has one. `rowdeck help AZ304` shows the same pages.\n\n| code | meaning |\n|---|---|\n",
    );
    for info in codes() {
        index.push_str(&format!("| [{0}]({0}.md) | {1} |\n", info.name(), info.title.replace('|', "\\|")));
    }
    let mut pages = vec![("README.md".to_owned(), index)];
    pages.extend(codes().map(|info| (format!("{}.md", info.name()), info.page())));
    pages
}
