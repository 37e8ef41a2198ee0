//! Rows as the text that `COPY ... FROM STDIN` reads.

use std::fmt::Write;

use super::{Dataset, Folder};

/// Appends the row with this number.
type RowWriter<'a> = Box<dyn Fn(usize, &mut String) + Send + Sync + 'a>;

/// One table's rows, to be written one after the other.
pub struct Table<'a> {
    /// `app.folders`.
    pub name: &'static str,
    /// The columns written, with commas.
    pub columns: &'static str,
    /// How many rows.
    pub rows: u64,
    /// True when its `id` is an identity column whose next value must be set after loading.
    pub identity: bool,
    write: RowWriter<'a>,
}

impl Table<'_> {
    /// Appends a row, with its line end.
    pub fn write_row(&self, index: usize, to: &mut String) {
        (self.write)(index, to);
        to.push('\n');
    }
}

/// When the first file was made: 2026-01-05 08:00 UTC, in seconds since 1970. Fixed, as the data must not depend on
/// the day.
const FIRST_FILE: u64 = 1_767_600_000;
/// Files are made over half a year.
const FILES_SPAN: u64 = 182 * 86_400;

impl Dataset {
    /// All tables in the order in which foreign keys allow them to be loaded.
    pub fn tables(&self) -> Vec<Table<'_>> {
        let with_id =
            |name, columns, rows: usize, write| Table { name, columns, rows: rows as u64, identity: true, write };
        vec![
            with_id("app.orgs", "id, name", self.orgs.len(), Box::new(|row, to| self.org_row(row, to))),
            with_id("app.users", "id, name, active", self.users.len(), Box::new(|row, to| self.user_row(row, to))),
            pairs("app.org_admins", "org_id, user_id", &self.org_admins),
            with_id("app.teams", "id, org_id, name", self.teams.len(), Box::new(|row, to| self.team_row(row, to))),
            pairs("app.team_members", "team_id, user_id", &self.team_members),
            pairs("app.team_teams", "team_id, member_team_id", &self.team_teams),
            with_id(
                "app.folders",
                "id, org_id, parent_id, owner_id, name, inherit",
                self.folders.len(),
                Box::new(|row, to| self.folder_row(row, to)),
            ),
            pairs("app.folder_links", "folder_id, shown_in", &self.folder_links),
            pairs("app.folder_teams", "folder_id, team_id", &self.folder_teams),
            with_id(
                "app.files",
                "id, folder_id, owner_id, name, confidential, created_at",
                self.file_count(),
                Box::new(|row, to| self.file_row(row, to)),
            ),
        ]
    }

    fn org_row(&self, row: usize, to: &mut String) {
        number(to, row as u64 + 1);
        text(to, self.orgs.get(row).map_or("", String::as_str));
    }

    fn user_row(&self, row: usize, to: &mut String) {
        let Some(user) = self.users.get(row) else { return };
        number(to, row as u64 + 1);
        text(to, &user.name);
        flag(to, user.active);
    }

    fn team_row(&self, row: usize, to: &mut String) {
        let Some(team) = self.teams.get(row) else { return };
        number(to, row as u64 + 1);
        id(to, team.org);
        text(to, &team.name);
    }

    fn folder_row(&self, row: usize, to: &mut String) {
        let Some(Folder { org, parent, owner, inherit, .. }) = self.folders.get(row) else { return };
        number(to, row as u64 + 1);
        id(to, *org);
        match parent {
            Some(parent) => id(to, *parent),
            None => to.push_str("\t\\N"),
        }
        id(to, *owner);
        text(to, &self.folder_name(row));
        flag(to, *inherit);
    }

    fn file_row(&self, row: usize, to: &mut String) {
        let Some(file) = self.file(row) else { return };
        number(to, row as u64 + 1);
        id(to, file.folder);
        id(to, file.owner);
        text(to, &file.name);
        flag(to, file.confidential);
        let after = FILES_SPAN * 1000 * row as u64 / (self.file_count() as u64).max(1);
        moment(to, FIRST_FILE * 1000 + after);
    }
}

fn pairs<'a>(name: &'static str, columns: &'static str, of: &'a [(u32, u32)]) -> Table<'a> {
    let write = move |row: usize, to: &mut String| {
        if let Some((first, second)) = of.get(row) {
            number(to, u64::from(*first) + 1);
            id(to, *second);
        }
    };
    Table { name, columns, rows: of.len() as u64, identity: false, write: Box::new(write) }
}

/// The first column: a number as it is.
fn number(to: &mut String, number: u64) {
    // Writing to a string cannot fail.
    let _ = write!(to, "{number}");
}

/// A further column: the id of the row with this number.
fn id(to: &mut String, index: u32) {
    let _ = write!(to, "\t{}", u64::from(index) + 1);
}

fn flag(to: &mut String, flag: bool) {
    to.push_str(if flag { "\tt" } else { "\tf" });
}

/// A further column: text, with what COPY's text format gives a meaning escaped.
fn text(to: &mut String, text: &str) {
    to.push('\t');
    for letter in text.chars() {
        match letter {
            '\\' => to.push_str("\\\\"),
            '\t' => to.push_str("\\t"),
            '\n' => to.push_str("\\n"),
            '\r' => to.push_str("\\r"),
            other => to.push(other),
        }
    }
}

/// A further column: milliseconds since 1970 as a timestamp in UTC.
fn moment(to: &mut String, milliseconds: u64) {
    let seconds = milliseconds / 1000;
    let (year, month, day) = civil(seconds / 86_400);
    let of_day = seconds % 86_400;
    let _ = write!(
        to,
        "\t{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}.{:03}+00",
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60,
        milliseconds % 1000
    );
}

/// Year, month and day of a day counted from 1970-01-01 (Hinnant's algorithm, for days after 1970).
fn civil(days: u64) -> (u64, u64, u64) {
    let z = days + 719_468;
    let (era, of_era) = (z / 146_097, z % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(FIRST_FILE / 86_400), (2026, 1, 5));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_512), (2026, 2, 28));
        assert_eq!(civil(20_513), (2026, 3, 1));
    }

    #[test]
    fn text_is_escaped_as_copy_reads_it() {
        let mut row = String::new();
        text(&mut row, "a\tb\\c\nd");
        assert_eq!(row, "\ta\\tb\\\\c\\nd");
    }
}
