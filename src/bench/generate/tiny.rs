//! A small company and its agency, written by hand, so that every screen has something worth looking at: nested teams,
//! a folder that does not inherit, a folder shown in another organisation's, confidential files, shares of each kind,
//! someone inactive and someone who holds nothing.

use super::{Dataset, File, Files, Folder, Share, Shared, Team, User, With};

const ORGS: [&str; 2] = ["Northwind", "Atelier"];

/// Name and whether active.
const USERS: [(&str, bool); 14] = [
    ("Ada", true),
    ("Ben", true),
    ("Chidi", true),
    ("Dina", true),
    ("Emil", true),
    ("Farah", true),
    ("Grace", true),
    ("Hugo", true),
    ("Ines", true),
    ("Jonas", true),
    ("Katya", true),
    ("Linus", false),
    ("Mira", true),
    ("Noor", true),
];

const ORG_ADMINS: [(&str, &str); 2] = [("Northwind", "Ada"), ("Atelier", "Ines")];

/// Organisation and name.
const TEAMS: [(&str, &str); 7] = [
    ("Northwind", "Everyone"),
    ("Northwind", "Finance"),
    ("Northwind", "Engineering"),
    ("Northwind", "Databases"),
    ("Northwind", "People"),
    ("Atelier", "Studio"),
    ("Atelier", "Illustration"),
];

const TEAM_MEMBERS: [(&str, &str); 13] = [
    ("Finance", "Ben"),
    ("Finance", "Chidi"),
    ("Engineering", "Dina"),
    ("Engineering", "Emil"),
    ("Databases", "Farah"),
    ("Databases", "Grace"),
    ("People", "Hugo"),
    ("People", "Linus"),
    ("Studio", "Ines"),
    ("Studio", "Jonas"),
    ("Illustration", "Katya"),
    ("Everyone", "Ada"),
    ("Everyone", "Mira"),
];

/// A team and the team inside it.
const TEAM_TEAMS: [(&str, &str); 5] = [
    ("Everyone", "Finance"),
    ("Everyone", "Engineering"),
    ("Everyone", "People"),
    ("Engineering", "Databases"),
    ("Studio", "Illustration"),
];

/// Organisation, parent, owner, name, whether it inherits.
const FOLDERS: [(&str, &str, &str, &str, bool); 19] = [
    ("Northwind", "", "Ada", "Company", true),
    ("Northwind", "Company", "Ben", "Finance", true),
    ("Northwind", "Finance", "Ben", "Budget 2026", true),
    ("Northwind", "Finance", "Chidi", "Invoices", true),
    ("Northwind", "Invoices", "Chidi", "October", true),
    ("Northwind", "Invoices", "Chidi", "November", true),
    ("Northwind", "Company", "Dina", "Engineering", true),
    ("Northwind", "Engineering", "Dina", "Roadmap", true),
    ("Northwind", "Engineering", "Farah", "Databases", true),
    ("Northwind", "Databases", "Grace", "Incidents", true),
    ("Northwind", "Incidents", "Grace", "2026-11-02 outage", true),
    ("Northwind", "Company", "Hugo", "People", false),
    ("Northwind", "People", "Hugo", "Salaries", true),
    ("Northwind", "People", "Hugo", "Handbook", true),
    ("Northwind", "Company", "Mira", "Launch", true),
    ("Atelier", "", "Ines", "Clients", true),
    ("Atelier", "Clients", "Jonas", "Northwind launch", true),
    ("Atelier", "Northwind launch", "Katya", "Illustrations", true),
    ("Atelier", "Clients", "Jonas", "Other work", true),
];

/// A folder and the one it is also shown in: everyone at Northwind reads the handbook, and the launch team sees what
/// the agency makes.
const LINKS: [(&str, &str); 2] = [("Handbook", "Company"), ("Northwind launch", "Launch")];

const FOLDER_TEAMS: [(&str, &str); 6] = [
    ("Finance", "Finance"),
    ("Engineering", "Engineering"),
    ("Databases", "Databases"),
    ("People", "People"),
    ("Clients", "Studio"),
    ("Illustrations", "Illustration"),
];

/// Folder, owner, name, whether confidential.
const FILES: [(&str, &str, &str, bool); 26] = [
    ("Company", "Ada", "Town hall notes", false),
    ("Company", "Ada", "Board minutes", true),
    ("Finance", "Ben", "Q3 plan", false),
    ("Finance", "Ben", "Q4 plan", false),
    ("Budget 2026", "Ben", "Budget draft", false),
    ("Budget 2026", "Chidi", "Headcount", true),
    ("October", "Chidi", "Invoice 1041", false),
    ("October", "Chidi", "Invoice 1042", false),
    ("November", "Chidi", "Invoice 1043", false),
    ("November", "Ben", "Invoice 1044", false),
    ("Engineering", "Dina", "Architecture", false),
    ("Roadmap", "Dina", "Roadmap 2027", false),
    ("Roadmap", "Emil", "Ideas", false),
    ("Databases", "Farah", "Upgrade to 18", false),
    ("Incidents", "Grace", "How we respond", false),
    ("2026-11-02 outage", "Grace", "Timeline", false),
    ("2026-11-02 outage", "Farah", "Root cause", true),
    ("Salaries", "Hugo", "Salaries 2026", true),
    ("Handbook", "Hugo", "Holidays", false),
    ("Handbook", "Hugo", "Expenses", false),
    ("Launch", "Mira", "Launch checklist", false),
    ("Launch", "Mira", "Press release", false),
    ("Northwind launch", "Jonas", "Brief", false),
    ("Illustrations", "Katya", "Cover sketch", false),
    ("Illustrations", "Katya", "Icons", false),
    ("Other work", "Jonas", "Pitch", false),
];

pub(super) fn dataset(seed: u64) -> Dataset {
    let org = |name| place(ORGS.iter().copied(), name);
    let user = |name| place(USERS.iter().map(|u| u.0), name);
    let team = |name| place(TEAMS.iter().map(|t| t.1), name);
    let folder = |name| place(FOLDERS.iter().map(|f| f.3), name);
    Dataset {
        seed,
        orgs: ORGS.iter().map(|name| (*name).to_owned()).collect(),
        users: USERS.iter().map(|(name, active)| User { name: (*name).to_owned(), active: *active }).collect(),
        org_admins: ORG_ADMINS.iter().map(|(o, u)| (org(o), user(u))).collect(),
        teams: TEAMS.iter().map(|(o, name)| Team { org: org(o), name: (*name).to_owned() }).collect(),
        team_members: TEAM_MEMBERS.iter().map(|(t, u)| (team(t), user(u))).collect(),
        team_teams: TEAM_TEAMS.iter().map(|(outer, inner)| (team(outer), team(inner))).collect(),
        folders: folders(),
        folder_names: Some(FOLDERS.iter().map(|f| f.3.to_owned()).collect()),
        folder_links: LINKS.iter().map(|(f, shown_in)| (folder(f), folder(shown_in))).collect(),
        folder_teams: FOLDER_TEAMS.iter().map(|(f, t)| (folder(f), team(t))).collect(),
        files: Files::Listed(
            FILES
                .iter()
                .map(|(f, u, name, confidential)| File {
                    folder: folder(f),
                    owner: user(u),
                    name: (*name).to_owned(),
                    confidential: *confidential,
                })
                .collect(),
        ),
        shares: shares(),
    }
}

fn folders() -> Vec<Folder> {
    let mut folders: Vec<Folder> = Vec::with_capacity(FOLDERS.len());
    for (org, parent, owner, _, inherit) in FOLDERS {
        let parent = (!parent.is_empty()).then(|| place(FOLDERS.iter().map(|f| f.3), parent));
        let level = parent.and_then(|parent| folders.get(parent as usize)).map_or(0, |parent| parent.level + 1);
        folders.push(Folder {
            org: place(ORGS.iter().copied(), org),
            parent,
            owner: place(USERS.iter().map(|u| u.0), owner),
            inherit,
            level,
        });
    }
    folders
}

fn shares() -> Vec<Share> {
    let user = |name| place(USERS.iter().map(|u| u.0), name);
    let team = |name| place(TEAMS.iter().map(|t| t.1), name);
    let folder = |name| Shared::Folder(place(FOLDERS.iter().map(|f| f.3), name));
    let file = |name| Shared::File(place(FILES.iter().map(|f| f.2), name));
    let share = |what, relation, with, by| Share { what, relation, with, by: user(by) };
    vec![
        share(folder("Budget 2026"), "viewer", With::User(user("Dina")), "Ben"),
        share(folder("Launch"), "editor", With::Team(team("Everyone")), "Mira"),
        share(folder("Northwind launch"), "editor", With::User(user("Mira")), "Jonas"),
        share(folder("Illustrations"), "viewer", With::EveryUser, "Katya"),
        share(file("Board minutes"), "viewer", With::User(user("Ben")), "Ada"),
        share(file("Root cause"), "viewer", With::Team(team("Engineering")), "Farah"),
    ]
}

/// The number of a name in a list. A test checks that every name used above is in its list.
fn place(mut names: impl Iterator<Item = &'static str>, name: &str) -> u32 {
    names.position(|candidate| candidate == name).map_or(u32::MAX, |place| place as u32)
}
