//! The Inspect screen: questions to the database and their answers.

use super::jobs::need_link;
use crate::app::command::Command;
use crate::app::effect::Effect;
use crate::app::model::field::Field;
use crate::app::model::inspect::{
    Ask, Asking, BrowseRow, BrowseView, Children, Holder, Inspect, Line, ObjectRef, Pane, Told, parse_object,
};
use crate::app::model::{About, Level, Model};

/// Runs a command of the Inspect screen.
pub fn run(model: &mut Model, command: Command) -> Vec<Effect> {
    match command {
        Command::InspectFind => open_field(model, Asking::Object, String::new()),
        Command::InspectPerson => open_field(model, Asking::Person, "user ".to_owned()),
        Command::InspectBrowse => return put(model, Ask::Types),
        Command::InspectExpand => return expand(model),
        Command::InspectCollapse => collapse(model),
        Command::InspectMatrix => {
            (model.inspect.matrix, model.inspect.at) = (!model.inspect.matrix, 0);
        }
        Command::InspectOpen => return open(model),
        Command::InspectWhy => return why(model),
        Command::InspectMore => return more(model),
        Command::InspectRefresh => {
            if let Some(ask) = model.inspect.last.clone() {
                return put(model, ask);
            }
        }
        _ => {}
    }
    Vec::new()
}

fn open_field(model: &mut Model, asking: Asking, text: String) {
    model.inspect.asking = asking;
    model.inspect.field = Some(Field::with(text));
}

/// Sends a question.
fn put(model: &mut Model, ask: Ask) -> Vec<Effect> {
    if !need_link(model) {
        return Vec::new();
    }
    model.inspect.asked += 1;
    let asked = model.inspect.asked;
    model.inspect.waiting = Some(asked);
    model.inspect.failure = None;
    if !matches!(ask, Ask::Why { .. } | Ask::Children { .. }) {
        model.inspect.last = Some(ask.clone());
    }
    vec![Effect::Ask { asked, ask }]
}

/// The typed line was accepted.
pub fn field_accepted(model: &mut Model) -> Vec<Effect> {
    let Some(field) = model.inspect.field.take() else { return Vec::new() };
    let text = field.text.trim().to_owned();
    match model.inspect.asking {
        Asking::Object => match parse_object(&text) {
            Some(object) => put(model, Ask::Object(object)),
            None => complain(model, "write a type and an id, such as: file 88"),
        },
        Asking::Person => match parse_object(&text) {
            Some(person) => put(model, Ask::Person { person, ty: String::new(), after: None }),
            None => complain(model, "write a type and an id, such as: user 31"),
        },
        Asking::Why => why_accepted(model, &text),
    }
}

fn complain(model: &mut Model, words: &str) -> Vec<Effect> {
    model.say(Level::Warn, words);
    Vec::new()
}

/// Opens what is under the cursor: a holder's own view, or an object.
fn open(model: &mut Model) -> Vec<Effect> {
    let at = model.inspect.at;
    let ask = match &model.inspect.pane {
        Pane::Empty => {
            open_field(model, Asking::Object, String::new());
            return Vec::new();
        }
        Pane::Types(types) => match types.get(at) {
            Some(ty) => Ask::Browse { ty: ty.name.clone(), after: None },
            None => return Vec::new(),
        },
        Pane::Object(view) if model.inspect.matrix => match Inspect::people(view).get(at) {
            Some(holder) => Ask::Person { person: holder.who.clone(), ty: view.object.ty.clone(), after: None },
            None => return Vec::new(),
        },
        Pane::Object(view) => match Inspect::lines(view).get(at) {
            Some(Line::Holder(_, holder)) => {
                Ask::Person { person: holder.who.clone(), ty: view.object.ty.clone(), after: None }
            }
            _ => return complain(model, "mark a person: enter shows what they see, w why they may do that"),
        },
        Pane::Person(view) => match view.rows.get(at) {
            Some(row) => Ask::Object(ObjectRef { ty: view.ty.clone(), id: row.id.clone() }),
            None => return Vec::new(),
        },
        Pane::Browse(view) => match view.rows.get(at) {
            Some(row) if row.more.is_some() => return expand(model),
            Some(row) => Ask::Object(row.who.clone()),
            None => return Vec::new(),
        },
    };
    put(model, ask)
}

/// Why: of the holder under the cursor, or of someone who is typed.
fn why(model: &mut Model) -> Vec<Effect> {
    let at = model.inspect.at;
    let ask = match &model.inspect.pane {
        Pane::Object(_) if model.inspect.matrix => None,
        Pane::Object(view) => match Inspect::lines(view).get(at) {
            Some(Line::Holder(holders, holder)) => Some(Ask::Why {
                person: holder.who.clone(),
                object: view.object.clone(),
                permission: holders.permission.clone(),
            }),
            _ => None,
        },
        Pane::Person(view) => view.rows.get(at).and_then(|row| {
            Some(Ask::Why {
                person: view.person.clone(),
                object: ObjectRef { ty: view.ty.clone(), id: row.id.clone() },
                permission: row.permissions.last()?.clone(),
            })
        }),
        _ => None,
    };
    match (ask, &model.inspect.pane) {
        (Some(ask), _) => put(model, ask),
        (None, Pane::Object(_)) => {
            open_field(model, Asking::Why, "user ".to_owned());
            Vec::new()
        }
        (None, _) => complain(model, "open an object first (/), then ask why"),
    }
}

/// `user 31 view` was typed on an object.
fn why_accepted(model: &mut Model, text: &str) -> Vec<Effect> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (Pane::Object(view), [ty, id, permission]) = (&model.inspect.pane, words.as_slice()) else {
        return complain(model, "write who and what, such as: user 31 view");
    };
    let person = ObjectRef { ty: (*ty).to_owned(), id: (*id).to_owned() };
    let ask = Ask::Why { person, object: view.object.clone(), permission: (*permission).to_owned() };
    put(model, ask)
}

/// The next page.
fn more(model: &mut Model) -> Vec<Effect> {
    let ask = match &model.inspect.pane {
        Pane::Person(view) if view.after.is_some() => {
            Ask::Person { person: view.person.clone(), ty: view.ty.clone(), after: view.after.clone() }
        }
        Pane::Browse(view) if view.after.is_some() => Ask::Browse { ty: view.ty.clone(), after: view.after.clone() },
        _ => return complain(model, "there is no further page"),
    };
    put(model, ask)
}

/// On a person, looks at the next type that has rules.
pub fn other_type(model: &mut Model) -> Vec<Effect> {
    let Pane::Person(view) = &model.inspect.pane else {
        return complain(model, "enter opens what is marked; / finds an object, u a person, b browses a type");
    };
    let at = view.types.iter().position(|ty| *ty == view.ty).unwrap_or(0);
    let Some(ty) = view.types.get((at + 1) % view.types.len().max(1)).cloned() else { return Vec::new() };
    let person = view.person.clone();
    put(model, Ask::Person { person, ty, after: None })
}

/// The database answered; answers to older questions are dropped.
pub fn told(model: &mut Model, asked: u64, told: Told) -> Vec<Effect> {
    if model.inspect.waiting != Some(asked) {
        return Vec::new();
    }
    model.inspect.waiting = None;
    if !matches!(told, Told::Failed(_)) {
        model.worked(About::Inspect);
    }
    match told {
        Told::Why(view) => model.inspect.why = Some(view),
        Told::Failed(why) => {
            let why = crate::text::line(&why).into_owned();
            model.fail(About::Inspect, why.clone());
            model.inspect.failure = Some(why);
        }
        Told::Object(view) => show(model, Pane::Object(view)),
        Told::Person(view) => match &mut model.inspect.pane {
            Pane::Person(known)
                if known.person == view.person
                    && known.ty == view.ty
                    && known.after.is_some()
                    && asks_more(&model.inspect.last) =>
            {
                known.rows.extend(view.rows);
                known.after = view.after;
            }
            _ => show(model, Pane::Person(view)),
        },
        Told::Types(types) => show(model, Pane::Types(types)),
        Told::Children(children) => graft(model, children),
        Told::Browse(view) => match &mut model.inspect.pane {
            Pane::Browse(known)
                if known.title == view.title && known.after.is_some() && asks_more(&model.inspect.last) =>
            {
                known.rows.extend(view.rows);
                known.after = view.after;
            }
            _ => show(model, Pane::Browse(view)),
        },
    }
    Vec::new()
}

fn asks_more(last: &Option<Ask>) -> bool {
    matches!(last, Some(Ask::Person { after: Some(_), .. } | Ask::Browse { after: Some(_), .. }))
}

/// Asks for what lies under the marked object, or shows it when it was folded.
fn expand(model: &mut Model) -> Vec<Effect> {
    let at = model.inspect.at;
    let ask = match &model.inspect.pane {
        Pane::Types(types) => types.get(at).map(|ty| Ask::Browse { ty: ty.name.clone(), after: None }),
        Pane::Object(view) => Some(Ask::Children { of: view.object.clone(), from: None }),
        Pane::Browse(view) => match view.rows.get(at) {
            Some(row) if row.open => return Vec::new(),
            Some(row) => Some(Ask::Children { of: row.who.clone(), from: row.more.clone() }),
            None => None,
        },
        Pane::Person(view) => view.rows.get(at).map(|row| {
            let of = ObjectRef { ty: view.ty.clone(), id: row.id.clone() };
            Ask::Children { of, from: None }
        }),
        Pane::Empty => None,
    };
    match ask {
        Some(ask) => put(model, ask),
        None => complain(model, "mark an object first"),
    }
}

/// Folds the marked object, or goes to the one it lies under.
fn collapse(model: &mut Model) {
    let at = model.inspect.at;
    let Pane::Browse(view) = &mut model.inspect.pane else { return };
    let Some((depth, open)) = view.rows.get(at).map(|row| (row.depth, row.open)) else { return };
    if !open {
        model.inspect.at = view.rows.iter().take(at).rposition(|row| row.depth < depth).unwrap_or(at);
        return;
    }
    let below = view.rows.iter().skip(at + 1).take_while(|row| row.depth > depth).count();
    view.rows.drain(at + 1..at + 1 + below);
    if let Some(row) = view.rows.get_mut(at) {
        row.open = false;
    }
}

/// Puts what lies under an object under its line; where there is no such line, shows it by itself.
fn graft(model: &mut Model, children: Children) {
    let row = |depth: usize| {
        move |(holder, through): (Holder, String)| BrowseRow {
            who: holder.who,
            label: holder.label,
            depth,
            through,
            open: false,
            more: None,
        }
    };
    let rest = |depth: usize, of: &ObjectRef, more: &Option<String>| {
        more.as_ref().map(|more| BrowseRow { who: of.clone(), depth, more: Some(more.clone()), ..BrowseRow::default() })
    };
    let at = model.inspect.at;
    if let Pane::Browse(view) = &mut model.inspect.pane {
        let fits = |row: &&mut BrowseRow| row.who == children.of && row.more == children.from;
        let found = view.rows.get_mut(at).filter(fits).map(|row| {
            row.open = true;
            (row.depth, row.more.is_some())
        });
        if let Some((depth, is_rest)) = found {
            let depth = if is_rest { depth } else { depth + 1 };
            let mut rows: Vec<BrowseRow> = children.rows.into_iter().map(row(depth)).collect();
            rows.extend(rest(depth, &children.of, &children.more));
            let nothing = rows.is_empty();
            let from = if is_rest { at } else { at + 1 };
            view.rows.splice(from..at + 1, rows);
            if nothing {
                let words = format!("nothing lies under {}", children.of);
                model.say(Level::Info, words);
            }
            return;
        }
    }
    let mut rows: Vec<BrowseRow> = children.rows.into_iter().map(row(0)).collect();
    rows.extend(rest(0, &children.of, &children.more));
    let title = format!("in {}", children.of);
    show(model, Pane::Browse(BrowseView { title, ty: String::new(), rows, after: None }));
}

fn show(model: &mut Model, pane: Pane) {
    model.inspect.pane = pane;
    model.inspect.at = 0;
    model.inspect.why = None;
}
