//! The text of a draft.

use super::shape::{Relation, Shape, Type};
use super::{Options, Table};

/// The whole policy.
pub(super) fn policy(shape: &Shape<'_>, options: &Options, others: &[&Table]) -> String {
    let mut out = String::from(
        "-- Drafted from the tables and foreign keys of the database. It compiles, and gives little: what a row's owner,\n\
         -- members and container say. Every line marked LOOK is a choice that only you can make.\n",
    );
    match &options.app_role {
        Some(role) => out.push_str(&format!("app role {}\n", role.plain())),
        None => out.push_str(
            "-- LOOK: the role your app connects as; it must exist and must not own the tables.\napp role app_user\n",
        ),
    }
    for (at, ty) in shape.types.iter().enumerate() {
        out.push('\n');
        if at == 0 {
            out.push_str(&users_comment(ty, options, others));
            user(ty, &mut out);
        } else {
            plain_type(ty, &mut out);
        }
    }
    for (at, ty) in shape.types.iter().enumerate() {
        out.push('\n');
        rules(ty, at == 0, &mut out);
    }
    open_tables(shape, &mut out);
    out
}

fn users_comment(ty: &Type<'_>, options: &Options, others: &[&Table]) -> String {
    let table = ty.table.name.plain();
    let guessed = match options.users {
        Some(_) => return String::new(),
        None => format!("-- LOOK: {table} was taken for the table of those who sign in, by its name"),
    };
    if others.is_empty() {
        return format!("{guessed}.\n");
    }
    let names: Vec<String> = others.iter().map(|table| table.name.plain()).collect();
    format!("{guessed}; it could also be {}.\n", names.join(", "))
}

fn header(ty: &Type<'_>) -> String {
    let usual = matches!(ty.key.as_slice(), [(column, "bigint")] if column.as_str() == "id");
    let key: Vec<String> = ty.key.iter().map(|(column, of)| format!("{} {of}", column.plain())).collect();
    let key = if usual { String::new() } else { format!(" ({})", key.join(", ")) };
    format!("type {} = {}{key}", ty.name, ty.table.name.plain())
}

fn user(ty: &Type<'_>, out: &mut String) {
    let active = ty.table.columns.iter().find(|c| c.ty == "boolean" && matches!(c.name.as_str(), "active" | "enabled"));
    let condition = active.map_or_else(String::new, |column| format!(" where {{{}}}", column.name.plain()));
    let key = ty.key.first().map(|(column, _)| column.plain()).unwrap_or_default();
    out.push_str(&format!("{}{condition}\n  self : user = {key}\n", header(ty)));
    out.push_str("  can view = self\n  can edit = self\n");
    // Relations of a user to others are nobody's right over the user.
    notes(ty, out);
}

fn plain_type(ty: &Type<'_>, out: &mut String) {
    out.push_str(&header(ty));
    out.push('\n');
    for relation in ty.relations() {
        out.push_str(&format!("  {} : {}\n", relation.name, relation.body));
    }
    notes(ty, out);
    let names = |relations: &[Relation]| relations.iter().map(|r| r.name.clone()).collect::<Vec<_>>();
    let followed = |what: &str| ty.containers.iter().map(|r| format!("{}.{what}", r.name)).collect::<Vec<_>>();
    let mut edit = [names(&ty.owners), names(&ty.admins), followed("edit")].concat();
    let mut view = [names(&ty.members), names(&ty.groups), followed("view")].concat();
    let from_parent = |terms: &mut Vec<String>, what: &str| {
        // Inheriting needs somewhere to start from.
        if let Some(parent) = &ty.parent
            && !terms.is_empty()
        {
            terms.push(format!("{}.{what}", parent.name));
        }
    };
    let nobody_edits = edit.is_empty();
    from_parent(&mut edit, "edit");
    if !nobody_edits {
        view.insert(0, "edit".to_owned());
    }
    let nobody_views = view.is_empty();
    from_parent(&mut view, "view");
    if nobody_edits {
        out.push_str("  -- LOOK: no column says who may change it.\n  can edit = nobody\n");
    } else {
        out.push_str(&format!("  can edit = {}\n", edit.join(" or ")));
    }
    if nobody_views {
        out.push_str("  -- LOOK: no column says who may see it; signed_in would be everybody who signs in.\n  can view = nobody\n");
    } else {
        out.push_str(&format!("  can view = {}\n", view.join(" or ")));
    }
}

fn notes(ty: &Type<'_>, out: &mut String) {
    for note in &ty.notes {
        out.push_str(&format!("  -- {note}\n"));
    }
}

fn rules(ty: &Type<'_>, user: bool, out: &mut String) {
    out.push_str(&format!("rules {}\n  select : view\n", ty.table.name.plain()));
    if user {
        out.push_str(
            "  -- LOOK: people who work together see each other's names; a wider select or a masked view does it.\n",
        );
        out.push_str("  update : edit\n  update after : edit\n");
        return;
    }
    let nobody = ty.owners.is_empty() && ty.admins.is_empty() && ty.containers.is_empty();
    if nobody {
        return;
    }
    // The row as it would be must be its maker's to edit, before and after, wherever it goes.
    out.push_str("  insert : edit\n  update : edit\n  update after : edit\n  delete : edit\n");
}

/// What the draft leaves ungoverned.
fn open_tables(shape: &Shape<'_>, out: &mut String) {
    if shape.links.is_empty() && shape.left_out.is_empty() {
        return;
    }
    out.push_str(
        "\n-- LOOK: these tables have no rules, so the app role reads and writes all of them that it has privileges on.\n\
         -- Links decide who may do what: write them through functions, or make each a type with a key and rules.\n",
    );
    for link in &shape.links {
        out.push_str(&format!("-- {}\n", link.name.plain()));
    }
    for (table, why) in &shape.left_out {
        out.push_str(&format!("-- {}: {why}\n", table.name.plain()));
    }
}
