//! Random policies: well formed, over two to five types, with relations of all kinds, tiers, inheritance, denies and
//! conditions.

use rowdeck::compiler::emit::emit;
use rowdeck::compiler::prove::sample::Random;

use crate::case::{Case, compile};

/// A type as far as later ones must know it.
struct Made {
    name: String,
    /// Relations to people.
    people: Vec<String>,
    /// Relations to objects: name, type's index.
    objects: Vec<(String, usize)>,
    permissions: Vec<String>,
    /// Columns that conditions may read.
    flags: Vec<&'static str>,
}

const CONDITIONS: [(&str, &str); 6] = [
    ("open", "open"),
    ("open", "not open"),
    ("level", "level > 2"),
    ("kind", "kind in ('x', 'y')"),
    ("kind", "this.kind is not null"),
    ("level", "level = 1 or open is null"),
];

/// A case with a policy of its own; `None` when it needs something that is not built.
pub fn case(seed: u64) -> Option<Case> {
    let policy = write(seed);
    let model = match compile(&policy) {
        Ok(model) => model,
        Err(what) if what.lines().any(|line| line.starts_with("AZ199")) => return None,
        Err(what) => panic!("seed {seed} makes no policy:\n{policy}\n{what}"),
    };
    if emit(&model).is_err() {
        return None;
    }
    Some(Case::of_policy("random_policies", &policy, seed).unwrap())
}

/// The text of a random policy.
pub fn write(seed: u64) -> String {
    let mut random = Random(seed.wrapping_mul(0x2545_F491_4F6C_DD1D) ^ 0xABCD);
    let r = &mut random;
    let mut text = String::from("app role app_user\n");
    text.push_str(if r.once_in(2) { "type user = app.users where {active}\n" } else { "type user = app.users\n" });
    let user = Made { name: "user".into(), people: vec![], objects: vec![], permissions: vec![], flags: vec![] };
    let mut types = vec![user];
    text.push_str(&team(r, &mut types));
    for number in 0..1 + r.below(3) {
        text.push_str(&object(r, &mut types, number));
    }
    let objects: Vec<usize> = (2..types.len()).collect();
    for at in objects {
        text.push_str(&rules(r, &types, at));
    }
    text
}

fn key(r: &mut Random) -> &'static str {
    ["", "", "", " (id uuid)", " (code text)", " (id integer)", " (org integer, slug text)"][r.below(7)]
}

fn team(r: &mut Random, types: &mut Vec<Made>) -> String {
    let mut text = String::from("type team = app.teams");
    text.push_str(if r.once_in(3) { " where {live}\n" } else { "\n" });
    let on = if r.once_in(3) { " where {accepted}" } else { "" };
    text.push_str(&format!("  member : user = app.team_members(team_id -> user_id){on}\n"));
    if !r.once_in(3) {
        text.push_str("  member : team#member = app.team_teams(team_id -> inner_id)\n");
    }
    if r.once_in(3) {
        text.push_str("  member : user = lead_id\n");
    }
    text.push_str("  can belong = member\n");
    types.push(Made {
        name: "team".into(),
        people: vec!["member".into()],
        objects: vec![],
        permissions: vec!["belong".into()],
        flags: vec![],
    });
    text
}

fn object(r: &mut Random, types: &mut Vec<Made>, number: usize) -> String {
    let name = format!("o{number}");
    let key = key(r);
    let composite = key.contains(',');
    let link = |table: &str, to: &str| {
        let object = if composite { "[o_org, o_slug]" } else { "o_id" };
        format!("app.{table}({object} -> {to})")
    };
    let mut text = format!("type {name} = app.{name}s{key}");
    let mut made = Made { name: name.clone(), people: vec![], objects: vec![], permissions: vec![], flags: vec![] };
    if r.once_in(4) {
        text.push_str(" where {live}");
    }
    text.push('\n');
    text.push_str("  owner : user = owner_id\n");
    made.people.push("owner".into());
    if r.once_in(2) {
        text.push_str("  editor : team#member = team_id\n");
        if r.once_in(2) {
            let on = if r.once_in(2) { " where {kind = 'x'}" } else { "" };
            text.push_str(&format!("  editor : user = {}{on}\n", link(&format!("{name}_editors"), "user_id")));
        }
        made.people.push("editor".into());
    }
    if r.once_in(2) {
        let on = if r.once_in(2) { " where {until is null or level > 1}" } else { "" };
        text.push_str(&format!("  guest : team#member = {}{on}\n", link(&format!("{name}_teams"), "team_id")));
        made.people.push("guest".into());
    }
    if !r.once_in(3) {
        let kinds = ["user", "user, team#member", "user, team#member, user:*", "user, anyone", "team#member"];
        text.push_str(&format!("  viewer : {} shared\n", kinds[r.below(kinds.len())]));
        made.people.push("viewer".into());
    }
    // Itself, and types before it.
    if !r.once_in(3) {
        let column = if composite { "[parent_org, parent_slug]" } else { "parent_id" };
        text.push_str(&format!("  parent : {name} = {column}\n"));
        made.objects.push(("parent".into(), types.len()));
        if r.once_in(2) {
            let to = if composite { "[p_org, p_slug]" } else { "p_id" };
            let on = if r.once_in(3) { " where {open}" } else { "" };
            text.push_str(&format!("  shown : {name} = {}{on}\n", link(&format!("{name}_links"), to)));
            made.objects.push(("shown".into(), types.len()));
        }
    }
    for (at, other) in types.iter().enumerate().skip(1) {
        if r.once_in(2) {
            let keyed = other.flags.contains(&"composite");
            let column = if keyed { format!("[{0}_org, {0}_slug]", other.name) } else { format!("{}_ref", other.name) };
            if r.once_in(3) {
                let table = format!("{name}_{}", other.name);
                text.push_str(&format!("  in_{} : {} = {}\n", other.name, other.name, link(&table, &column)));
            } else {
                text.push_str(&format!("  in_{} : {} = {column}\n", other.name, other.name));
            }
            made.objects.push((format!("in_{}", other.name), at));
        }
    }
    if composite {
        made.flags.push("composite");
    }
    // Only what is shared may have a permission to share it.
    let first = if made.people.iter().any(|p| p == "viewer") { "share" } else { "run" };
    let names = [first, "edit", "view", "hide", "open"];
    let count = 2 + r.below(4);
    for name in names.iter().take(count) {
        let line = permission(r, types, &made, name, types.len());
        text.push_str(&line);
        made.permissions.push((*name).to_owned());
    }
    types.push(made);
    text
}

fn condition(r: &mut Random) -> String {
    format!("{{{}}}", CONDITIONS[r.below(CONDITIONS.len())].1)
}

/// `can NAME = EXPR`: one start, then perhaps tiers, inheritance, and a limit on all of it.
fn permission(r: &mut Random, types: &[Made], made: &Made, name: &str, own: usize) -> String {
    let mut terms = vec![term(r, types, made, own, 0)];
    for _ in 0..r.below(3) {
        terms.push(term(r, types, made, own, 1));
    }
    let mut inherits = false;
    for (relation, to) in &made.objects {
        if *to == own && !r.once_in(3) {
            inherits = true;
            terms.push(match r.below(3) {
                0 => format!("({relation}.{name} and {})", condition(r)),
                1 => format!("({relation}.{name} and {} and not {})", condition(r), condition(r)),
                _ => format!("{relation}.{name}"),
            });
        }
    }
    terms.sort();
    terms.dedup();
    let all = terms.join(" or ");
    let whole = if terms.len() > 1 { format!("({all})") } else { all.clone() };
    // What is not inherited may be limited by anything; what is, by conditions alone.
    let expr = match r.below(6) {
        0 => format!("{whole} and {}", condition(r)),
        1 if !inherits && !made.permissions.is_empty() => {
            format!("{whole} and not {}", made.permissions[r.below(made.permissions.len())])
        }
        2 if !inherits => format!("{whole} and not {}", made.people[r.below(made.people.len())]),
        _ => all,
    };
    format!("  can {name} = {expr}\n")
}

/// A term that does not depend on the permission it stands in.
fn term(r: &mut Random, types: &[Made], made: &Made, own: usize, depth: usize) -> String {
    for _ in 0..8 {
        let found = match r.below(12) {
            0..=3 => Some(made.people[r.below(made.people.len())].clone()),
            4..=5 if !made.permissions.is_empty() => Some(made.permissions[r.below(made.permissions.len())].clone()),
            6..=8 => follow(r, types, made, own),
            9 if depth < 2 => {
                let (a, b) = (term(r, types, made, own, depth + 1), term(r, types, made, own, depth + 1));
                let not = if r.once_in(3) { "not " } else { "" };
                Some(format!("({a} and {not}{b})"))
            }
            10 if depth < 2 => Some(format!("({} and {})", term(r, types, made, own, depth + 1), condition(r))),
            11 if r.once_in(3) => {
                let rare = ["signed_in", "anyone", "{this.owner_id = authz.uid()}", "{authz.ctx('k') = 'a'}", "nobody"];
                Some(rare[r.below(rare.len())].to_owned())
            }
            _ => None,
        };
        if let Some(found) = found {
            return found;
        }
    }
    "owner".to_owned()
}

fn follow(r: &mut Random, types: &[Made], made: &Made, own: usize) -> Option<String> {
    let (relation, to) = r.pick(&made.objects)?;
    let target = if *to == own { made } else { &types[*to] };
    let choices: Vec<&String> = target.people.iter().chain(&target.permissions).collect();
    Some(format!("{relation}.{}", r.pick(&choices)?))
}

fn rules(r: &mut Random, types: &[Made], at: usize) -> String {
    let made = &types[at];
    let mut text = format!("rules app.{}s\n", made.name);
    let mut line = |command: &str, r: &mut Random| {
        let expr = match r.below(3) {
            0 => term(r, types, made, at, 0),
            _ => made.permissions[r.below(made.permissions.len())].clone(),
        };
        text.push_str(&format!("  {command} : {expr}\n"));
    };
    line("select", r);
    line("insert", r);
    if !r.once_in(5) {
        line("update", r);
        if r.once_in(2) {
            line("update owner_id", r);
        }
        if r.once_in(3) {
            line("update owner_id after", r);
        }
        if r.once_in(3) {
            line("update after", r);
        }
    }
    if !r.once_in(5) {
        line("delete", r);
    }
    text
}
