//! The Inspect screen: an object and who holds what on it, or a person and what they see.

use super::field::Field;

/// An object by its policy type and its id as text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectRef {
    /// The policy's type.
    pub ty: String,
    /// The id, as text.
    pub id: String,
}

impl std::fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.ty, self.id)
    }
}

/// Someone who holds a permission on an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Who.
    pub who: ObjectRef,
    /// A name from the row, when it has one.
    pub label: Option<String>,
}

/// One permission on the object: who holds it, as far as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holders {
    /// The permission.
    pub permission: String,
    /// Who, as far as read.
    pub who: Vec<Holder>,
    /// There are more than those.
    pub cut: bool,
}

/// An object as the screen shows it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectView {
    /// Which.
    pub object: ObjectRef,
    /// A name from the row, when it has one.
    pub label: Option<String>,
    /// Who holds each permission.
    pub permissions: Vec<Holders>,
}

/// A page of what a person sees of one type, as row-level security gives it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PersonView {
    /// Who.
    pub person: ObjectRef,
    /// A name from their row, when it has one.
    pub label: Option<String>,
    /// The type looked at.
    pub ty: String,
    /// The types that have rules.
    pub types: Vec<String>,
    /// Rows read so far: id, a name when there is one, and the permissions held.
    pub rows: Vec<PersonRow>,
    /// Where the next page starts.
    pub after: Option<String>,
}

/// One row a person sees.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PersonRow {
    /// The object's id.
    pub id: String,
    /// A name from the row, when it has one.
    pub label: Option<String>,
    /// Permissions the person holds on it.
    pub permissions: Vec<String>,
}

/// A type of the policy in force.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TypeRow {
    /// Its name.
    pub name: String,
    /// Its table.
    pub table: String,
    /// It signs in.
    pub signs_in: bool,
}

/// A line of the tree of objects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BrowseRow {
    /// The object; for a line that stands for unread ones, the object they lie under.
    pub who: ObjectRef,
    /// A name from the row, when it has one.
    pub label: Option<String>,
    /// How many objects it lies under here.
    pub depth: usize,
    /// The relation by which it lies there.
    pub through: String,
    /// What lies under it is shown.
    pub open: bool,
    /// Where reading the unread ones goes on.
    pub more: Option<String>,
}

/// What was read of what lies under an object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Children {
    /// The object.
    pub of: ObjectRef,
    /// Where this page began, when it is not the first.
    pub from: Option<String>,
    /// What lies under it, and by which relation.
    pub rows: Vec<(Holder, String)>,
    /// Where the next page starts.
    pub more: Option<String>,
}

/// Objects of a type, or what lies under one, page by page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BrowseView {
    /// The type, or what it all lies under.
    pub title: String,
    /// The type of the next page.
    pub ty: String,
    /// Lines read so far.
    pub rows: Vec<BrowseRow>,
    /// Where the next page starts.
    pub after: Option<String>,
}

/// Why, or why not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WhyView {
    /// The question, in words.
    pub question: String,
    /// The answer, line by line.
    pub lines: Vec<String>,
}

/// What the left pane shows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Pane {
    /// Nothing yet.
    #[default]
    Empty,
    /// The types of the policy.
    Types(Vec<TypeRow>),
    /// An object.
    Object(ObjectView),
    /// A person.
    Person(PersonView),
    /// Objects of a type.
    Browse(BrowseView),
}

/// What the typed line is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Asking {
    /// An object.
    #[default]
    Object,
    /// A person.
    Person,
    /// Why: `user 31 view`.
    Why,
}

/// What is asked of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// Who holds each permission on this object.
    Object(ObjectRef),
    /// What this person sees of a type, after this id.
    Person {
        /// Who.
        person: ObjectRef,
        /// Of which type; the first governed one when empty.
        ty: String,
        /// The last id of the page before.
        after: Option<String>,
    },
    /// The types of the policy in force.
    Types,
    /// What lies directly under an object.
    Children {
        /// The object.
        of: ObjectRef,
        /// Where to go on; at the start when not given.
        from: Option<String>,
    },
    /// Objects of a type, after this id.
    Browse {
        /// The type.
        ty: String,
        /// The last id of the page before.
        after: Option<String>,
    },
    /// Why may (or may not) this person do that.
    Why {
        /// Who.
        person: ObjectRef,
        /// On what.
        object: ObjectRef,
        /// The permission.
        permission: String,
    },
}

/// What the database said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// The types.
    Types(Vec<TypeRow>),
    /// What lies under an object.
    Children(Children),
    /// An object.
    Object(ObjectView),
    /// A person's page.
    Person(PersonView),
    /// A page of objects.
    Browse(BrowseView),
    /// Why.
    Why(WhyView),
    /// A sentence: why there is no answer.
    Failed(String),
}

/// The Inspect screen.
#[derive(Debug, Clone, Default)]
pub struct Inspect {
    /// What the left pane shows.
    pub pane: Pane,
    /// The marked line.
    pub at: usize,
    /// An object is shown as a matrix of people and permissions.
    pub matrix: bool,
    /// The answer on the right.
    pub why: Option<WhyView>,
    /// The line being typed, and what for.
    pub field: Option<Field>,
    /// What the line is for.
    pub asking: Asking,
    /// The number of the question we wait for; answers to older ones are dropped.
    pub waiting: Option<u64>,
    /// Counts questions.
    pub asked: u64,
    /// The last question, to ask it again.
    pub last: Option<Ask>,
    /// Why there is no answer.
    pub failure: Option<String>,
}

/// A line of the object pane, for moving about in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line<'a> {
    /// A permission and how many hold it.
    Permission(&'a Holders),
    /// Someone who holds it.
    Holder(&'a Holders, &'a Holder),
}

impl Inspect {
    /// The lines of an object's pane.
    pub fn lines(view: &ObjectView) -> Vec<Line<'_>> {
        let mut lines = Vec::new();
        for holders in &view.permissions {
            lines.push(Line::Permission(holders));
            lines.extend(holders.who.iter().map(|holder| Line::Holder(holders, holder)));
        }
        lines
    }

    /// Everybody who holds anything on the object, as far as read, each once.
    pub fn people(view: &ObjectView) -> Vec<&Holder> {
        let mut found: Vec<&Holder> = Vec::new();
        for holder in view.permissions.iter().flat_map(|p| &p.who) {
            if !found.iter().any(|known| known.who == holder.who) {
                found.push(holder);
            }
        }
        found
    }

    /// How many lines the pane has.
    pub fn len(&self) -> usize {
        match &self.pane {
            Pane::Empty => 0,
            Pane::Types(types) => types.len(),
            Pane::Object(view) if self.matrix => Inspect::people(view).len(),
            Pane::Object(view) => Inspect::lines(view).len(),
            Pane::Person(view) => view.rows.len(),
            Pane::Browse(view) => view.rows.len(),
        }
    }

    /// The pane has no line.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Reads `file 88`; `None` when it is not a type and an id.
pub fn parse_object(text: &str) -> Option<ObjectRef> {
    let (ty, id) = text.trim().split_once(char::is_whitespace)?;
    let id = id.trim();
    (!id.is_empty()).then(|| ObjectRef { ty: ty.to_owned(), id: id.to_owned() })
}
