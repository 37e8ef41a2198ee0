#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

use super::*;
use crate::bench::generate::{Dataset, Shape, Size};

fn world(data: &Dataset) -> World {
    let id = |index: u32| i64::from(index) + 1;
    let nodes = data
        .folders
        .iter()
        .enumerate()
        .map(|(index, folder)| Node {
            id: id(index as u32),
            parent: folder.parent.map(id),
            owner: id(folder.owner),
            org: id(folder.org),
            level: 0,
            below: 0,
        })
        .collect();
    let active = |index: &usize| data.users[*index].active;
    let readers = (0..data.users.len()).filter(active).map(|index| id(index as u32)).collect();
    let both = |pairs: &[(u32, u32)]| -> Vec<(i64, i64)> { pairs.iter().map(|(a, b)| (id(*a), id(*b))).collect() };
    let files = (1..=data.file_count() as i64).collect();
    World::new(nodes, readers, &both(&data.org_admins), both(&data.folder_links), files, "test").unwrap()
}

fn grown() -> Dataset {
    Dataset::grown(Shape { folders: 4_000, levels: 12, files_per_folder: 4, held: 25, orgs: 5 }, 1)
}

#[test]
fn levels_and_sizes_are_those_of_the_tree() {
    let data = grown();
    let world = world(&data);
    for (node, folder) in world.nodes.iter().zip(&data.folders) {
        assert_eq!(node.level, u32::from(folder.level));
    }
    let roots = world.nodes.iter().filter(|n| n.parent.is_none());
    let all: u64 = roots.map(|n| n.below + 1).sum();
    assert_eq!(all, 4_000);
}

#[test]
fn writes_come_in_the_announced_shares_and_can_make_no_ring() {
    for data in [grown(), Dataset::new(Size::Tiny, 1)] {
        let world = world(&data);
        let mut rng = Rng::new(1);
        let mut parents: HashMap<i64, Option<i64>> = world.nodes.iter().map(|n| (n.id, n.parent)).collect();
        let mut links: HashMap<i64, Vec<i64>> = HashMap::new();
        for (folder, shown_in) in &world.existing_links {
            links.entry(*folder).or_default().push(*shown_in);
        }
        let mut counts: BTreeMap<Kind, u32> = BTreeMap::new();
        for _ in 0..2_000 {
            let op = world.write_op(&mut rng).unwrap();
            *counts.entry(op.kind).or_default() += 1;
            let node = world.node(op.id).unwrap();
            let may = node.owner == op.user || world.org_admins[&node.org].contains(&op.user);
            assert!(may && world.active.contains(&op.user), "{op:?}");
            match op.kind {
                Kind::Move => {
                    assert_ne!(parents.insert(op.id, op.other), Some(op.other), "moved to where it is");
                    assert!(node.below <= 20);
                }
                Kind::Link => links.entry(op.id).or_default().push(op.other.unwrap()),
                Kind::Create => assert!(op.name.starts_with("rowdeck bench test "), "{}", op.name),
                other => panic!("{other:?}"),
            }
        }
        let level = |id: i64| world.node(id).unwrap().level;
        for (id, parent) in &parents {
            assert!(parent.is_none_or(|parent| level(parent) < level(*id)));
        }
        for (id, shown_in) in &links {
            let made = |to: &&i64| !world.existing_links.contains(&(*id, **to));
            assert!(shown_in.iter().filter(made).all(|to| level(*to) < level(*id)));
            let distinct: HashSet<&i64> = shown_in.iter().collect();
            assert_eq!(distinct.len(), shown_in.len(), "linked twice");
        }
        if data.folders.len() > 1_000 {
            assert!((1_720..1_880).contains(&counts[&Kind::Create]), "{counts:?}");
            assert!((140..220).contains(&counts[&Kind::Move]), "{counts:?}");
            assert!((8..40).contains(&counts[&Kind::Link]), "{counts:?}");
        } else {
            assert!(counts[&Kind::Move] > 20, "{counts:?}");
        }
        let journal = world.journal();
        assert_eq!(journal.created, u64::from(counts[&Kind::Create]));
        for (id, home) in &journal.moved {
            assert_eq!(world.node(*id).unwrap().parent, *home, "the way back is where it was first");
        }
    }
}

#[test]
fn a_quarter_of_the_readers_are_admins_of_the_top() {
    let data = grown();
    let world = world(&data);
    let mut rng = Rng::new(1);
    let (mut heavy, mut counts) = (0, BTreeMap::<Kind, u32>::new());
    for _ in 0..3_000 {
        let op = world.read_op(&mut rng).unwrap();
        heavy += u32::from(world.heavy_admins.contains(&op.user));
        *counts.entry(op.kind).or_default() += 1;
    }
    assert!((750..1_050).contains(&heavy), "{heavy}: a quarter, and a few of the others by chance");
    assert!(counts.values().all(|n| (900..1_100).contains(n)), "{counts:?}");
}

#[test]
fn the_big_move_goes_away_and_home_again() {
    for data in [grown(), Dataset::new(Size::Tiny, 1)] {
        let world = world(&data);
        let plan = world.big_move().unwrap();
        assert!(world.nodes.iter().all(|n| n.below <= plan.below));
        assert_eq!(world.node(plan.away).unwrap().parent, None);
        for _ in 0..2 {
            assert_eq!(world.toggle_big_move(&plan), Some(plan.away));
            world.big_moved(&plan, Some(plan.away));
            assert_eq!(world.toggle_big_move(&plan), plan.home);
            world.big_moved(&plan, plan.home);
        }
        assert_eq!(world.journal().moved[&plan.folder], plan.home);
    }
}

#[test]
fn an_empty_database_is_refused() {
    let error = World::new(Vec::new(), vec![1], &[], Vec::new(), vec![1], "test").unwrap_err();
    assert!(error.to_string().contains("load the example's data first"));
}
