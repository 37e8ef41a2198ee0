//! What a policy's text declares, and what fits where the cursor stands, by the look of its lines alone: it works while
//! the text does not compile, and on every keystroke.

/// A name that the text declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// The name.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// The type it belongs to, for a relation or a permission.
    pub of: Option<String>,
    /// The line, from 0.
    pub line: usize,
    /// The first column, in characters from 0.
    pub column: usize,
}

/// What a name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A type.
    Type,
    /// A relation of a type.
    Relation,
    /// A permission of a type.
    Permission,
    /// A caveat.
    Caveat,
    /// A scope.
    Scope,
    /// A word of the language.
    Word,
    /// A table of the database.
    Table,
    /// A column of a table.
    Column,
}

impl Kind {
    /// For people.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Type => "type",
            Kind::Relation => "relation",
            Kind::Permission => "permission",
            Kind::Caveat => "caveat",
            Kind::Scope => "scope",
            Kind::Word => "",
            Kind::Table => "table",
            Kind::Column => "column",
        }
    }
}

/// A table of the database, for completion.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    /// `app.files`
    pub name: String,
    /// Its columns.
    pub columns: Vec<String>,
}

/// What a policy's text declares.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Index {
    /// The names, in the order of the text.
    pub declared: Vec<Declared>,
    /// Types with their tables.
    tables: Vec<(String, String)>,
    /// Relations with the types they lead to: type, relation, targets.
    leads: Vec<(String, String, Vec<String>)>,
}

/// What a line belongs to: the block's keyword and name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Block {
    keyword: String,
    name: String,
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !is_word(c)).filter(|word| !word.is_empty())
}

/// The part of a line before its comment.
fn code(line: &str) -> &str {
    line.split_once("--").map_or(line, |(before, _)| before)
}

fn column_of(line: &str, part: &str) -> usize {
    line.find(part).map_or(0, |at| line.get(..at).map_or(0, |before| before.chars().count()))
}

fn block_of(line: &str) -> Option<Block> {
    if line.starts_with([' ', '\t', '}']) || code(line).trim().is_empty() {
        return None;
    }
    let mut parts = words(code(line));
    let mut keyword = parts.next()?.to_owned();
    if keyword == "principal" {
        // `principal type service = ...` and `principal service = ...` declare a type alike.
        keyword = "type".to_owned();
        let next = parts.next()?;
        let name = if next == "type" { parts.next()? } else { next };
        return Some(Block { keyword, name: name.to_owned() });
    }
    let name = if keyword == "rules" {
        code(line).trim().strip_prefix("rules").unwrap_or("").split_whitespace().next().unwrap_or("").to_owned()
    } else {
        parts.next().unwrap_or("").to_owned()
    };
    Some(Block { keyword, name })
}

impl Index {
    /// Reads a text.
    pub fn of(lines: &[String]) -> Index {
        let mut index = Index::default();
        let mut block = Block::default();
        for (line, text) in lines.iter().enumerate() {
            if let Some(next) = block_of(text) {
                index.block(line, text, &next);
                block = next;
            } else if block.keyword == "type" {
                index.member(line, text, &block.name);
            }
        }
        index
    }

    fn block(&mut self, line: usize, text: &str, block: &Block) {
        let kind = match block.keyword.as_str() {
            "type" => Kind::Type,
            "caveat" => Kind::Caveat,
            "scope" => Kind::Scope,
            _ => return,
        };
        let column = column_of(text, &block.name);
        self.declared.push(Declared { name: block.name.clone(), kind, of: None, line, column });
        if let (Kind::Type, Some((_, table))) = (kind, code(text).split_once('=')) {
            let table = table.split_whitespace().next().unwrap_or("").to_owned();
            self.tables.push((block.name.clone(), table));
        }
    }

    fn member(&mut self, line: usize, text: &str, ty: &str) {
        let body = code(text).trim_start();
        let permission = body.strip_prefix("can ").map(str::trim_start);
        let (name, kind) = match permission {
            Some(rest) => (words(rest).next(), Kind::Permission),
            None if body.contains(':') => (words(body).next(), Kind::Relation),
            None => return,
        };
        let Some(name) = name else { return };
        let column = match permission {
            Some(rest) => column_of(text, rest),
            None => column_of(text, body),
        };
        let known = self.declared.iter().any(|d| d.kind == kind && d.name == name && d.of.as_deref() == Some(ty));
        if !known {
            self.declared.push(Declared { name: name.to_owned(), kind, of: Some(ty.to_owned()), line, column });
        }
        if kind == Kind::Relation {
            let after = body.split_once(':').map_or("", |(_, rest)| rest);
            let subjects = after.split(['=']).next().unwrap_or("").split(" shared").next().unwrap_or("");
            let targets: Vec<String> =
                subjects.split(',').filter_map(|subject| words(subject).next().map(str::to_owned)).collect();
            match self.leads.iter_mut().find(|(of, relation, _)| of == ty && relation == name) {
                Some((.., known)) => known.extend(targets),
                None => self.leads.push((ty.to_owned(), name.to_owned(), targets)),
            }
        }
    }

    /// The names of a type.
    fn of_type<'a>(&'a self, ty: &str) -> impl Iterator<Item = &'a Declared> + use<'a> {
        let ty = ty.to_owned();
        self.declared.iter().filter(move |d| d.of.as_deref() == Some(ty.as_str()))
    }

    fn targets(&self, ty: &str, relation: &str) -> &[String] {
        let found = self.leads.iter().find(|(of, name, _)| of == ty && name == relation);
        found.map_or(&[], |(.., targets)| targets)
    }

    fn type_of_table(&self, table: &str) -> Option<&str> {
        self.tables.iter().find(|(_, known)| known == table).map(|(ty, _)| ty.as_str())
    }

    fn table_of_type(&self, ty: &str) -> Option<&str> {
        self.tables.iter().find(|(known, _)| known == ty).map(|(_, table)| table.as_str())
    }

    /// The type whose names count on a line: that of its block, or that of the table that its rules are about.
    fn type_at(&self, lines: &[String], line: usize) -> Option<String> {
        let block = lines.get(..=line)?.iter().rev().find_map(|text| block_of(text))?;
        match block.keyword.as_str() {
            "type" => Some(block.name),
            "rules" => self.type_of_table(&block.name).map(str::to_owned),
            _ => None,
        }
    }

    /// Where the name at this place is declared.
    pub fn definition(&self, lines: &[String], (line, column): (usize, usize)) -> Option<&Declared> {
        let text: Vec<char> = lines.get(line)?.chars().collect();
        let (start, end) = word_at(&text, column)?;
        let name: String = text.get(start..end)?.iter().collect();
        let ty = self.type_at(lines, line);
        let before = start.checked_sub(1).and_then(|at| text.get(at)).copied();
        if let (Some('.' | '#'), Some(from)) = (before, ty.as_deref()) {
            let (from_start, from_end) = word_at(&text, start - 1)?;
            let relation: String = text.get(from_start..from_end)?.iter().collect();
            let through = self.targets(from, &relation).iter().flat_map(|target| self.of_type(target));
            // `team#member` names a type; `parent.view` a relation.
            let mut found = through.chain(self.of_type(&relation)).filter(|d| d.name == name);
            return found.next();
        }
        // Between the colon and the source stand types.
        let head: String = text.get(..start)?.iter().collect();
        if head.contains(':')
            && !head.contains('=')
            && let Some(found) = self.declared.iter().find(|d| d.kind == Kind::Type && d.name == name)
        {
            return Some(found);
        }
        let own = ty.as_deref().and_then(|ty| self.of_type(ty).find(|d| d.name == name));
        own.or_else(|| self.declared.iter().find(|d| d.of.is_none() && d.name == name))
            .or_else(|| self.declared.iter().find(|d| d.name == name))
    }

    /// What may stand where the cursor is, the nearest first, and the column where the word begins that it completes.
    pub fn complete(
        &self,
        lines: &[String],
        (line, column): (usize, usize),
        tables: &[Table],
    ) -> (usize, Vec<(String, Kind)>) {
        let text: Vec<char> = lines.get(line).map(|l| l.chars().collect()).unwrap_or_default();
        let column = column.min(text.len());
        let mut start = column;
        while start > 0 && text.get(start - 1).is_some_and(|c| is_word(*c)) {
            start -= 1;
        }
        let typed: String = text.get(start..column).unwrap_or_default().iter().collect();
        let before: String = text.get(..start).unwrap_or_default().iter().collect();
        let mut found = self.candidates(lines, line, &before, tables);
        found.retain(|(name, _)| name.starts_with(&typed) && *name != typed);
        let mut seen = std::collections::BTreeSet::new();
        found.retain(|(name, _)| seen.insert(name.clone()));
        (start, found)
    }

    fn candidates(&self, lines: &[String], line: usize, before: &str, tables: &[Table]) -> Vec<(String, Kind)> {
        let keywords = |list: &[&str]| list.iter().map(|word| ((*word).to_owned(), Kind::Word)).collect::<Vec<_>>();
        let ty = self.type_at(lines, line);
        let trimmed = before.trim_end();
        let indented = before.starts_with([' ', '\t']);
        if !indented && trimmed.is_empty() {
            return keywords(&[
                "type",
                "rules",
                "test",
                "app",
                "caveat",
                "scope",
                "include",
                "invariants",
                "principal",
            ]);
        }
        if before.rfind('{') > before.rfind('}') || (before.contains('{') && !before.contains('}')) {
            // Inside braces it is SQL on the type's own row.
            return self.columns(ty.as_deref().and_then(|ty| self.table_of_type(ty)), tables);
        }
        if let Some(rest) = before.strip_suffix(['.', '#']) {
            return self.after_dot(ty.as_deref(), rest, tables);
        }
        if before.rfind('(') > before.rfind(')') && before.contains(':') {
            let table = before.rsplit('=').next().and_then(|after| after.split('(').next()).map(str::trim);
            return self.columns(table, tables);
        }
        let members = || -> Vec<(String, Kind)> {
            let own = ty.iter().flat_map(|ty| self.of_type(ty));
            own.map(|d| (d.name.clone(), d.kind)).collect()
        };
        let body = before.trim_start();
        if !indented && (body.starts_with("rules") || trimmed.ends_with('=')) {
            let mut schemas: Vec<&str> = tables.iter().filter_map(|t| t.name.split('.').next()).collect();
            schemas.dedup();
            let names = schemas.into_iter().map(|schema| (schema.to_owned(), Kind::Table));
            return names.collect();
        }
        let in_rules = self.in_rules(lines, line);
        if body.starts_with("can ") && body.contains('=') || (in_rules && body.contains(':')) {
            let mut found = members();
            found.sort_by_key(|(_, kind)| *kind != Kind::Permission);
            found.extend(keywords(&["and", "or", "not", "signed_in", "anyone", "nobody"]));
            return found;
        }
        if body.contains(':') && !body.contains('=') {
            let types = self.declared.iter().filter(|d| d.kind == Kind::Type);
            let mut found: Vec<(String, Kind)> = types.map(|d| (d.name.clone(), Kind::Type)).collect();
            found.extend(keywords(&["shared", "anyone", "link"]));
            return found;
        }
        if body.contains(':') {
            let mut found = self.columns(ty.as_deref().and_then(|ty| self.table_of_type(ty)), tables);
            found.extend(tables.iter().filter_map(|t| Some((t.name.split('.').next()?.to_owned(), Kind::Table))));
            return found;
        }
        if in_rules && body.is_empty() {
            return keywords(&["select", "insert", "update", "delete", "mask"]);
        }
        if body.is_empty() {
            let mut found = keywords(&["can"]);
            found.extend(members().into_iter().filter(|(_, kind)| *kind == Kind::Relation));
            return found;
        }
        Vec::new()
    }

    fn in_rules(&self, lines: &[String], line: usize) -> bool {
        let block = lines.get(..=line).and_then(|above| above.iter().rev().find_map(|text| block_of(text)));
        block.is_some_and(|block| block.keyword == "rules")
    }

    fn columns(&self, table: Option<&str>, tables: &[Table]) -> Vec<(String, Kind)> {
        let found = tables.iter().find(|t| Some(t.name.as_str()) == table);
        found.map_or_else(Vec::new, |t| t.columns.iter().map(|c| (c.clone(), Kind::Column)).collect())
    }

    /// After `parent.` what the relation leads to has; after `app.` the schema's tables.
    fn after_dot(&self, ty: Option<&str>, before: &str, tables: &[Table]) -> Vec<(String, Kind)> {
        let name: String =
            before.chars().rev().take_while(|c| is_word(*c)).collect::<Vec<_>>().into_iter().rev().collect();
        let targets = ty.map_or(&[][..], |ty| self.targets(ty, &name));
        let through = targets.iter().flat_map(|target| self.of_type(target));
        let mut found: Vec<(String, Kind)> =
            through.chain(self.of_type(&name)).map(|d| (d.name.clone(), d.kind)).collect();
        found.sort_by_key(|(_, kind)| *kind != Kind::Permission);
        if found.is_empty() {
            let schema = format!("{name}.");
            let inside = tables.iter().filter_map(|t| t.name.strip_prefix(&schema));
            found.extend(inside.map(|table| (table.to_owned(), Kind::Table)));
        }
        found
    }
}

/// The word that the column is in or right behind.
fn word_at(text: &[char], column: usize) -> Option<(usize, usize)> {
    let inside = |at: usize| text.get(at).is_some_and(|c| is_word(*c));
    let at = if inside(column) { column } else { column.checked_sub(1).filter(|at| inside(*at))? };
    let mut start = at;
    while start > 0 && inside(start - 1) {
        start -= 1;
    }
    let mut end = at;
    while inside(end) {
        end += 1;
    }
    Some((start, end))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]
    use super::*;

    fn docs() -> Vec<String> {
        include_str!("../examples/docs/docs.authz").lines().map(str::to_owned).collect()
    }

    /// Line and column behind the first place of `part` in the text.
    fn behind(lines: &[String], part: &str) -> (usize, usize) {
        let line = lines.iter().position(|l| l.contains(part)).unwrap_or_else(|| panic!("{part}"));
        (line, lines[line].find(part).unwrap() + part.len())
    }

    fn goes(part: &str) -> String {
        let lines = docs();
        let index = Index::of(&lines);
        let found = index.definition(&lines, behind(&lines, part)).unwrap_or_else(|| panic!("{part} leads nowhere"));
        lines[found.line].trim().chars().take(24).collect()
    }

    #[test]
    fn a_name_leads_to_where_it_is_declared() {
        assert_eq!(goes("org    : org"), "type org = app.orgs");
        assert_eq!(goes("can share = owner"), "owner  : user = owner_id");
        assert_eq!(goes("or org.admin"), "admin : user = app.org_a");
        assert_eq!(goes("editor : team#member"), "member : user = app.team");
        assert_eq!(goes("or folder.edit"), "can edit  = share or edi");
        assert_eq!(goes("insert : parent.edit"), "can edit  = share or edi");
    }

    fn offered(text: &str, tables: &[Table]) -> Vec<String> {
        let mut lines = docs();
        lines.extend(text.lines().map(str::to_owned));
        let index = Index::of(&lines);
        let line = lines.len() - 1;
        let column = lines[line].chars().count();
        index.complete(&lines, (line, column), tables).1.into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn what_fits_is_offered() {
        let tables = [Table { name: "app.notes".into(), columns: vec!["id".into(), "owner_id".into()] }];
        assert_eq!(offered("ty", &[]), ["type"]);
        assert_eq!(offered("type note = app.", &tables), ["notes"]);
        assert_eq!(offered("type note = app.notes\n  owner : us", &tables), ["user"]);
        assert_eq!(offered("type note = app.notes\n  owner : user = ow", &tables), ["owner_id"]);
        assert_eq!(offered("type note = app.notes\n  owner : user = app.notes(o", &tables), ["owner_id"]);
        assert_eq!(
            offered("type note = app.notes\n  in : folder = x\n  can view = in.", &tables)[..3],
            ["share", "edit", "view"]
        );
        assert_eq!(offered("type note = app.notes\n  in : folder = x\n  can view = {o", &tables), ["owner_id"]);
        assert_eq!(offered("rules app.files\n  select : v", &tables), ["view", "viewer"]);
        assert_eq!(offered("rules app.files\n  se", &tables), ["select"]);
    }

    proptest::proptest! {
        #[test]
        fn nothing_panics(text in "(\\PC|\n| {2}|[a-z:=.#{}()-]){0,200}", line in 0_usize..12, column in 0_usize..60) {
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            let index = Index::of(&lines);
            index.definition(&lines, (line, column));
            index.complete(&lines, (line, column), &[]);
        }
    }
}
