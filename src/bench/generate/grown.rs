//! Data of any size: a tree exactly so many levels deep, each level one and a half times as wide as the one above.

use super::{Dataset, File, Files, Folder, Shape, Share, Shared, Team, User, With, words};
use crate::bench::random::Rng;

/// How wide each level of a tree of `total` folders is when each is one and a half times as wide as the one above.
/// Rounded so that the widths add up to `total` exactly.
pub fn level_widths(total: usize, levels: usize) -> Vec<usize> {
    let whole = 1.5_f64.powi(levels as i32) - 1.0;
    let above = |level: usize| ((total as f64) * (1.5_f64.powi(level as i32) - 1.0) / whole).round() as usize;
    (0..levels).map(|level| above(level + 1).saturating_sub(above(level))).collect()
}

/// One file in twenty is confidential.
const CONFIDENTIAL: u64 = 50;
/// One folder in fifty does not inherit.
const CLOSED: u64 = 20;
/// One user in fifty is inactive.
const INACTIVE: u64 = 20;

pub(super) fn dataset(shape: Shape, seed: u64) -> Dataset {
    // Two readers come on top of the ordinary ones: one who holds very much, and one who holds almost nothing.
    let members = (shape.folders / shape.held).max(4);
    let mut data = Dataset {
        seed,
        orgs: orgs(shape.orgs),
        users: users(members, seed),
        org_admins: Vec::new(),
        teams: teams(members, shape.orgs, seed),
        team_members: Vec::new(),
        team_teams: Vec::new(),
        folders: Vec::new(),
        folder_names: None,
        folder_links: Vec::new(),
        folder_teams: Vec::new(),
        files: Files::Drawn { folder_of: Vec::new() },
        shares: Vec::new(),
    };
    data.org_admins = org_admins(&shape, members, seed);
    (data.team_members, data.team_teams) = memberships(members, seed);
    let starts = grow_tree(&mut data.folders, &shape, members, seed);
    data.folder_links = links(&data.folders, &starts, seed);
    give_to_teams(&mut data, &shape, members);
    data.files = Files::Drawn { folder_of: spread_files(&shape, seed) };
    data.shares = shares(&data, &shape, members);
    data
}

fn orgs(count: usize) -> Vec<String> {
    (0..count).map(|org| if org == 0 { "Holding".to_owned() } else { format!("Subsidiary {org}") }).collect()
}

fn users(members: usize, seed: u64) -> Vec<User> {
    let mut rng = Rng::split(seed, "users", 0);
    let mut users: Vec<User> =
        (0..members).map(|index| User { name: words::person(index), active: !rng.chance(INACTIVE) }).collect();
    users.push(User { name: "Archivist".to_owned(), active: true });
    users.push(User { name: "Guest".to_owned(), active: true });
    users
}

fn teams(members: usize, orgs: usize, seed: u64) -> Vec<Team> {
    let mut rng = Rng::split(seed, "teams", 0);
    let mut teams: Vec<Team> =
        (0..members).map(|index| Team { org: rng.index(orgs) as u32, name: words::team(index) }).collect();
    teams.push(Team { org: 0, name: "Archive".to_owned() });
    teams
}

/// The first organisation, whose folders are the top of the tree, has many admins (one user in twenty): they reach
/// every folder. Each of the others has three.
fn org_admins(shape: &Shape, members: usize, seed: u64) -> Vec<(u32, u32)> {
    let mut rng = Rng::split(seed, "org admins", 0);
    let mut people: Vec<u32> = (0..members as u32).collect();
    rng.shuffle(&mut people);
    let mut people = people.into_iter().cycle();
    let mut admins = Vec::new();
    for org in 0..shape.orgs as u32 {
        let count = if org == 0 { (members / 20).max(1) } else { 3.min(members) };
        admins.extend(people.by_ref().take(count).map(|user| (org, user)));
    }
    admins
}

type Pairs = Vec<(u32, u32)>;

/// Everyone is in three teams; teams stand in chains of one to five, the members of each being members of the next.
fn memberships(members: usize, seed: u64) -> (Pairs, Pairs) {
    let mut rng = Rng::split(seed, "memberships", 0);
    let mut joined = Vec::new();
    for user in 0..members as u32 {
        let mut of_user: Vec<u32> = Vec::new();
        while of_user.len() < 3 {
            let team = rng.index(members) as u32;
            if !of_user.contains(&team) {
                of_user.push(team);
            }
        }
        joined.extend(of_user.into_iter().map(|team| (team, user)));
    }
    // The archivist, alone in the team that holds very much.
    joined.push((members as u32, members as u32));

    let mut nested = Vec::new();
    let mut team = 0;
    while team < members {
        let length = (1 + rng.index(5)).min(members - team);
        nested.extend((team + 1..team + length).map(|inner| (inner as u32 - 1, inner as u32)));
        team += length;
    }
    (joined, nested)
}

/// Fills `folders` level by level and returns where each level starts.
fn grow_tree(folders: &mut Vec<Folder>, shape: &Shape, members: usize, seed: u64) -> Vec<usize> {
    let mut rng = Rng::split(seed, "tree", 0);
    let widths = level_widths(shape.folders, shape.levels);
    // Owners: everybody the same number of folders, anywhere in the tree.
    let mut owners: Vec<u32> = (0..shape.folders).map(|index| (index % members) as u32).collect();
    rng.shuffle(&mut owners);
    let mut owners = owners.into_iter();
    // Subsidiaries begin at the first level where each gets about three folders; what is above is the holding's.
    let subsidiaries = shape.orgs.saturating_sub(1);
    let wide = |(level, width): (usize, &usize)| level > 0 && subsidiaries > 0 && *width >= 3 * subsidiaries;
    let splits = widths.iter().enumerate().position(wide);

    let mut starts = Vec::with_capacity(widths.len());
    let mut above = 0..0;
    for (level, width) in widths.into_iter().enumerate() {
        let start = folders.len();
        starts.push(start);
        for place in 0..width {
            let parent = (level > 0).then(|| above.start + parent_place(level, place, width, above.len(), &mut rng));
            let org = match parent.and_then(|parent| folders.get(parent)) {
                _ if Some(level) == splits => 1 + (place % subsidiaries) as u32,
                Some(parent) => parent.org,
                None => 0,
            };
            folders.push(Folder {
                org,
                parent: parent.map(|parent| parent as u32),
                owner: owners.next().unwrap_or_default(),
                inherit: level == 0 || !rng.chance(CLOSED),
                level: level as u8,
            });
        }
        above = start..folders.len();
    }
    starts
}

/// Which folder of the level above, which is `above` wide, a folder is put into.
///
/// At random, but not near the top: there, chance would often leave one root with nearly everything. So the first root
/// is given a third of what is below roots (its move is the big move), and down to the eleventh level nobody goes without.
fn parent_place(level: usize, place: usize, width: usize, above: usize, rng: &mut Rng) -> usize {
    let first = (width * 3 / 10).max(2);
    match level {
        1 if place < first || above < 2 => 0,
        1 => 1 + (place - first) % (above - 1),
        2..11 if place < above => place,
        _ => rng.index(above),
    }
}

/// One folder in twenty is also shown in a folder of some level nearer the top, so no folder ends up inside itself.
fn links(folders: &[Folder], starts: &[usize], seed: u64) -> Vec<(u32, u32)> {
    let mut rng = Rng::split(seed, "links", 0);
    let below_top = starts.get(1).copied().unwrap_or(folders.len());
    let mut linked: Vec<usize> = (below_top..folders.len()).collect();
    rng.shuffle(&mut linked);
    linked.truncate(folders.len() / 20);
    linked.sort_unstable();
    let mut links = Vec::with_capacity(linked.len());
    for index in linked {
        let Some(folder) = folders.get(index) else { continue };
        let level = rng.index(usize::from(folder.level));
        let start = starts.get(level).copied().unwrap_or_default();
        let end = starts.get(level + 1).copied().unwrap_or(folders.len());
        links.push((index as u32, (start + rng.index(end - start)) as u32));
    }
    links
}

/// Every team works in the same number of folders. The archive works in one folder in twelve and a half (4,000 of
/// 50,000), which is what its one member then holds.
fn give_to_teams(data: &mut Dataset, shape: &Shape, members: usize) {
    let mut rng = Rng::split(data.seed, "folder teams", 0);
    let mut teams: Vec<u32> = (0..shape.folders).map(|index| (index % members) as u32).collect();
    rng.shuffle(&mut teams);
    data.folder_teams = teams.into_iter().enumerate().map(|(folder, team)| (folder as u32, team)).collect();
    let archive = members as u32;
    let mut kept: Vec<u32> = (0..shape.folders as u32).collect();
    rng.shuffle(&mut kept);
    kept.truncate(shape.folders * 2 / 25);
    kept.sort_unstable();
    data.folder_teams.extend(kept.into_iter().map(|folder| (folder, archive)));
}

/// The same number of files for each folder, in the order of their ids at random: files come to be one after the other
/// all over a real tree, so the files of a folder do not lie side by side in the table.
fn spread_files(shape: &Shape, seed: u64) -> Vec<u32> {
    let mut folder_of: Vec<u32> =
        (0..shape.folders * shape.files_per_folder).map(|file| (file / shape.files_per_folder.max(1)) as u32).collect();
    Rng::split(seed, "files", 0).shuffle(&mut folder_of);
    folder_of
}

/// Four files in five belong to the folder's owner.
pub(super) fn file(data: &Dataset, index: usize, folder: u32) -> File {
    let mut rng = Rng::split(data.seed, "file", index as u64);
    let owner = match data.folders.get(folder as usize) {
        Some(folder) if rng.chance(800) => folder.owner,
        // The archivist and the guest, who come last, own nothing.
        _ => rng.index(data.users.len().saturating_sub(2)) as u32,
    };
    File { folder, owner, name: words::file(index, &mut rng), confidential: rng.chance(CONFIDENTIAL) }
}

pub(super) fn folder_name(seed: u64, index: usize) -> String {
    words::folder(index, &mut Rng::split(seed, "folder name", index as u64))
}

/// One folder in a hundred shared to be read and one in two hundred to be edited by a user, one in two hundred to be
/// read by a team, one file in a thousand to be read by a user, two leaves with everybody, and a few leaves with the
/// guest, who sees about one file in ten thousand.
fn shares(data: &Dataset, shape: &Shape, members: usize) -> Vec<Share> {
    let mut rng = Rng::split(data.seed, "shares", 0);
    let mut shares = Vec::new();
    for (index, folder) in data.folders.iter().enumerate() {
        let mut share = |relation, with| {
            shares.push(Share { what: Shared::Folder(index as u32), relation, with, by: folder.owner })
        };
        match rng.below(1000) {
            0..10 => share("viewer", With::User(rng.index(members) as u32)),
            10..15 => share("editor", With::User(rng.index(members) as u32)),
            15..20 => share("viewer", With::Team(rng.index(members) as u32)),
            _ => {}
        }
    }
    for index in 0..data.file_count() {
        if rng.chance(1)
            && let Some(file) = data.file(index)
        {
            let with = With::User(rng.index(members) as u32);
            shares.push(Share { what: Shared::File(index as u32), relation: "viewer", with, by: file.owner });
        }
    }
    let guest = members as u32 + 1;
    let for_guest = (data.file_count() / 10_000 / shape.files_per_folder.max(1)).max(1);
    let from_last = data.folders.iter().enumerate().rev();
    for (place, (index, folder)) in from_last.take(2 + for_guest).enumerate() {
        let with = if place < 2 { With::EveryUser } else { With::User(guest) };
        shares.push(Share { what: Shared::Folder(index as u32), relation: "viewer", with, by: folder.owner });
    }
    // Inactive users hold nothing: they may not share, and to share with them is refused.
    let active = |user: u32| data.users.get(user as usize).is_some_and(|user| user.active);
    shares.retain(|share| active(share.by) && !matches!(share.with, With::User(user) if !active(user)));
    shares
}
