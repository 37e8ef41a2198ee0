//! Names that are pleasant to read on a screen.

use crate::bench::random::Rng;

const GIVEN: [&str; 40] = [
    "Ada", "Alan", "Amara", "Anders", "Barbara", "Ben", "Chidi", "Clara", "Dina", "Edsger", "Elena", "Emil", "Farah",
    "Grace", "Hana", "Hugo", "Ines", "Ivan", "Jamal", "Joan", "Jonas", "Katya", "Ken", "Leila", "Linus", "Maya",
    "Mira", "Nadia", "Niels", "Noor", "Olga", "Omar", "Priya", "Radia", "Sofia", "Tariq", "Tove", "Vera", "Wen",
    "Yusuf",
];

const FAMILY: [&str; 40] = [
    "Abara", "Adler", "Almeida", "Berg", "Brandt", "Castro", "Chen", "Costa", "Demir", "Duarte", "Eriksen", "Fischer",
    "Fontaine", "Garcia", "Haddad", "Hansen", "Ito", "Jansen", "Kaya", "Keller", "Kim", "Kowalski", "Laurent", "Lindt",
    "Mbeki", "Moreau", "Nakamura", "Novak", "Okafor", "Patel", "Petrov", "Quist", "Rossi", "Sato", "Silva", "Tanaka",
    "Turner", "Vogel", "Weber", "Zhang",
];

const FOLDERS: [&str; 32] = [
    "Archive",
    "Audit",
    "Board",
    "Branding",
    "Budget",
    "Campaigns",
    "Clients",
    "Contracts",
    "Design",
    "Events",
    "Forecasts",
    "Handbook",
    "Hiring",
    "Incidents",
    "Invoices",
    "Launch",
    "Legal",
    "Meetings",
    "Onboarding",
    "Payroll",
    "Pitches",
    "Policies",
    "Press",
    "Pricing",
    "Procurement",
    "Projects",
    "Reports",
    "Research",
    "Roadmap",
    "Suppliers",
    "Taxes",
    "Training",
];

const FILES: [&str; 24] = [
    "Q1 plan",
    "Q2 plan",
    "Q3 plan",
    "Q4 plan",
    "Agenda",
    "Annual report",
    "Architecture",
    "Brief",
    "Budget",
    "Checklist",
    "Contract",
    "Draft",
    "Estimate",
    "Forecast",
    "Invoice",
    "Interview notes",
    "Letter",
    "Minutes",
    "Offer",
    "Proposal",
    "Review",
    "Schedule",
    "Slides",
    "Summary",
];

const TEAMS: [&str; 16] = [
    "Accounts",
    "Data",
    "Design",
    "Engineering",
    "Facilities",
    "Finance",
    "Infrastructure",
    "Legal",
    "Marketing",
    "Operations",
    "People",
    "Product",
    "Quality",
    "Research",
    "Sales",
    "Support",
];

fn of(words: &[&'static str], number: usize) -> &'static str {
    words.get(number % words.len().max(1)).copied().unwrap_or_default()
}

/// `Ada Lindt`, and from the 1,601st person on with a number.
pub(super) fn person(index: usize) -> String {
    let given = of(&GIVEN, index);
    // Family names go round once more for every round of given names, so that the first 1,600 people differ.
    let family = of(&FAMILY, index + index / GIVEN.len());
    match index / (GIVEN.len() * FAMILY.len()) {
        0 => format!("{given} {family}"),
        round => format!("{given} {family} {}", round + 1),
    }
}

/// `Finance 7`.
pub(super) fn team(index: usize) -> String {
    format!("{} {}", of(&TEAMS, index), index / TEAMS.len() + 1)
}

/// `Budget 12`: topics repeat, the number tells them apart.
pub(super) fn folder(index: usize, rng: &mut Rng) -> String {
    format!("{} {}", of(&FOLDERS, rng.index(FOLDERS.len())), index + 1)
}

/// `Q3 plan 1204`.
pub(super) fn file(index: usize, rng: &mut Rng) -> String {
    format!("{} {}", of(&FILES, rng.index(FILES.len())), index + 1)
}
