//! Security releases of PostgreSQL that matter to row-level security, by the minor version that has the mending.

/// One of them: what it is about, and the first fixed minor of each major version, from 15 on.
struct Advisory {
    name: &'static str,
    what: &'static str,
    /// Major version and its first minor with the mending. A major version that is not here never had the fault.
    fixed: &'static [(i32, i32)],
}

const ADVISORIES: &[Advisory] = &[
    Advisory {
        name: "CVE-2023-2455",
        what: "policies of another user apply after a function is inlined",
        fixed: &[(15, 3)],
    },
    Advisory { name: "CVE-2023-39418", what: "MERGE skips the policies for UPDATE and SELECT", fixed: &[(15, 4)] },
    Advisory {
        name: "CVE-2024-4317",
        what: "extended statistics show values of hidden rows",
        fixed: &[(15, 7), (16, 3)],
    },
    Advisory {
        name: "CVE-2024-10976",
        what: "a plan that is used again under another role keeps the policies of the first",
        fixed: &[(15, 9), (16, 5), (17, 1)],
    },
    Advisory {
        name: "CVE-2025-8713",
        what: "statistics show values of hidden rows of views, partitions and children",
        fixed: &[(15, 14), (16, 10), (17, 6)],
    },
];

/// One sentence that names the advisories this server lacks and the minor version that has them all; `None` when it
/// lacks none that this release knows of.
pub(super) fn lacking(version_num: i32) -> Option<String> {
    let (major, minor) = (version_num / 10_000, version_num % 10_000);
    let missing: Vec<(&Advisory, i32)> = ADVISORIES
        .iter()
        .filter_map(|advisory| {
            let (_, fixed) = advisory.fixed.iter().find(|(of, _)| *of == major)?;
            (minor < *fixed).then_some((advisory, *fixed))
        })
        .collect();
    let newest = missing.iter().map(|(_, fixed)| *fixed).max()?;
    let named: Vec<String> =
        missing.iter().map(|(advisory, _)| format!("{} ({})", advisory.name, advisory.what)).collect();
    Some(format!(
        "the server is PostgreSQL {major}.{minor}, which lacks {}; update it to {major}.{newest} or later",
        named.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_minor_is_told_what_it_lacks_and_where_to_go() {
        let said = lacking(160_004).unwrap_or_default();
        assert!(said.contains("16.4") && said.contains("CVE-2024-10976") && said.contains("16.10 or later"), "{said}");
        assert!(!said.contains("CVE-2024-4317"), "{said}");
    }

    #[test]
    fn a_mended_server_is_told_nothing() {
        for version in [150_014, 160_010, 170_006, 180_000] {
            assert_eq!(lacking(version), None);
        }
    }
}
