#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

use sha2::{Digest, Sha256};

use super::*;

fn digest(data: &Dataset) -> String {
    let mut hash = Sha256::new();
    for table in data.tables() {
        hash.update(table.name);
        for row in 0..table.rows as usize {
            let mut line = String::new();
            table.write_row(row, &mut line);
            assert!(line.len() > 2, "{} {row}: {line:?}", table.name);
            hash.update(line);
        }
    }
    hash.update(format!("{:?}", data.shares));
    hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

fn small() -> Shape {
    Shape { folders: 4_000, levels: 12, files_per_folder: 4, held: 25, orgs: 5 }
}

#[test]
fn a_seed_makes_the_same_bytes() {
    let first = Dataset::grown(small(), 1);
    assert_eq!(digest(&first), digest(&Dataset::grown(small(), 1)));
    assert_ne!(digest(&first), digest(&Dataset::grown(small(), 2)));
    assert_eq!(digest(&Dataset::new(Size::Tiny, 1)), digest(&Dataset::new(Size::Tiny, 2)));
}

#[test]
fn the_bytes_of_dev_with_seed_1_are_fixed() {
    // Published numbers name a size and a seed; they mean nothing once the same seed makes other data.
    assert_eq!(digest(&Dataset::new(Size::Dev, 1)), "ad7a4475ad76");
}

#[test]
fn dev_has_20_levels_each_one_and_a_half_times_as_wide() {
    let data = Dataset::new(Size::Dev, 1);
    assert_eq!(data.folders.len(), 20_000);
    assert_eq!(data.file_count(), 400_000);
    assert_eq!(data.users.len(), 800 + 2);
    let mut widths = vec![0_usize; 20];
    for folder in &data.folders {
        widths[usize::from(folder.level)] += 1;
        match folder.parent {
            None => assert_eq!(folder.level, 0),
            Some(parent) => assert_eq!(data.folders[parent as usize].level + 1, folder.level),
        }
    }
    assert_eq!(widths, level_widths(20_000, 20));
    for pair in widths.windows(2) {
        let ideal = pair[0] as f64 * 1.5;
        assert!((pair[1] as f64 - ideal).abs() <= 1.5, "{widths:?}");
    }
}

#[test]
fn one_folder_in_twenty_is_shown_nearer_the_top() {
    let data = Dataset::grown(small(), 1);
    assert_eq!(data.folder_links.len(), 200);
    let mut linked: Vec<u32> = data.folder_links.iter().map(|link| link.0).collect();
    linked.dedup();
    assert_eq!(linked.len(), 200, "each of them once");
    for (folder, shown_in) in &data.folder_links {
        assert!(data.folders[*shown_in as usize].level < data.folders[*folder as usize].level);
    }
}

#[test]
fn users_and_teams_hold_25_folders_each() {
    let data = Dataset::grown(small(), 1);
    for user in 0..160 {
        assert_eq!(data.folders.iter().filter(|f| f.owner == user).count(), 25);
        assert_eq!(data.folder_teams.iter().filter(|(_, team)| *team == user).count(), 25);
        assert_eq!(data.team_members.iter().filter(|(_, member)| *member == user).count(), 3);
    }
    let (archivist, guest) = (160, 161);
    assert_eq!(data.folder_teams.iter().filter(|(_, team)| *team == archivist).count(), 320);
    assert!(data.team_members.contains(&(archivist, archivist)));
    assert!(!data.team_members.iter().any(|(_, member)| *member == guest));
    assert!(data.shares.iter().any(|share| share.with == With::User(guest)));
}

#[test]
fn files_are_spread_evenly_and_some_are_confidential() {
    let data = Dataset::grown(small(), 1);
    let mut per_folder = vec![0; 4_000];
    let mut confidential = 0;
    for index in 0..data.file_count() {
        let file = data.file(index).unwrap();
        per_folder[file.folder as usize] += 1;
        confidential += usize::from(file.confidential);
        assert!((file.owner as usize) < 160);
    }
    assert!(per_folder.iter().all(|n| *n == 4));
    assert!((600..1_000).contains(&confidential), "{confidential}");
    assert!(data.file(data.file_count()).is_none());
}

#[test]
fn the_holding_has_many_admins_and_the_top_of_the_tree() {
    let data = Dataset::grown(small(), 1);
    assert!(data.folders.iter().all(|f| f.level > 0 || f.org == 0));
    for org in 0..5 {
        assert!(data.folders.iter().any(|f| f.org == org));
        let admins = data.org_admins.iter().filter(|(of, _)| *of == org).count();
        assert_eq!(admins, if org == 0 { 8 } else { 3 });
    }
    let mut pairs = data.org_admins.clone();
    pairs.sort_unstable();
    pairs.dedup();
    assert_eq!(pairs.len(), data.org_admins.len());
}

#[test]
fn closed_folders_and_shares_by_active_owners_exist() {
    let data = Dataset::grown(small(), 1);
    let closed = data.folders.iter().filter(|f| !f.inherit).count();
    assert!((40..130).contains(&closed), "{closed}");
    assert!(data.users.iter().any(|u| !u.active));
    assert!(data.shares.len() > 50);
    for share in &data.shares {
        assert!(data.users[share.by as usize].active);
        if let With::User(user) = share.with {
            assert!(data.users[user as usize].active);
        }
    }
}

#[test]
fn every_name_in_tiny_is_defined() {
    let data = Dataset::new(Size::Tiny, 1);
    let (orgs, users, teams) = (data.orgs.len() as u32, data.users.len() as u32, data.teams.len() as u32);
    let folders = data.folders.len() as u32;
    assert!(data.org_admins.iter().all(|(o, u)| *o < orgs && *u < users));
    assert!(data.teams.iter().all(|t| t.org < orgs));
    assert!(data.team_members.iter().all(|(t, u)| *t < teams && *u < users));
    assert!(data.team_teams.iter().all(|(a, b)| *a < teams && *b < teams));
    assert!(
        data.folders
            .iter()
            .enumerate()
            .all(|(i, f)| f.org < orgs && f.owner < users && f.parent.is_none_or(|p| (p as usize) < i))
    );
    assert!(data.folder_links.iter().chain(&data.folder_teams).all(|(f, _)| *f < folders));
    assert!(data.folder_links.iter().all(|(_, f)| *f < folders));
    assert!(data.folder_teams.iter().all(|(_, t)| *t < teams));
    for index in 0..data.file_count() {
        let file = data.file(index).unwrap();
        assert!(file.folder < folders && file.owner < users);
    }
    for share in &data.shares {
        match share.what {
            Shared::Folder(folder) => assert!(folder < folders),
            Shared::File(file) => assert!((file as usize) < data.file_count()),
        }
        match share.with {
            With::User(user) => assert!(user < users),
            With::Team(team) => assert!(team < teams),
            With::EveryUser => {}
        }
        assert!(share.by < users);
    }
    assert!((50..200).contains(&data.rows()));
}

#[test]
fn sizes_are_named() {
    assert_eq!("dev".parse(), Ok(Size::Dev));
    assert_eq!(Size::Large.to_string(), "large");
    assert!("huge".parse::<Size>().unwrap_err().contains("tiny, dev and large"));
}
