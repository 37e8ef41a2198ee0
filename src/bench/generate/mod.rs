//! The docs example's data: the same seed makes the same rows, byte for byte.
//!
//! What is small (who belongs to what, the tree) is held in memory as numbers; what is large (the files) is a function
//! of the row's number, so that loading streams and nothing is built that is thrown away.

mod copy;
mod grown;
mod tiny;
mod words;

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

pub use copy::Table;
pub use grown::level_widths;

/// How much data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Size {
    /// Tens of rows, written by hand: to look at.
    Tiny,
    /// 20,000 folders and 400,000 files.
    Dev,
    /// 50,000 folders and a million files.
    Large,
}

impl Size {
    /// All of them, smallest first.
    pub const ALL: [Size; 3] = [Size::Tiny, Size::Dev, Size::Large];

    /// Its name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Size::Tiny => "tiny",
            Size::Dev => "dev",
            Size::Large => "large",
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Size::ALL
            .into_iter()
            .find(|size| size.word() == text)
            .ok_or_else(|| format!("\"{text}\" is no size; there are tiny, dev and large"))
    }
}

/// The numbers a grown data set follows from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Folders in the tree.
    pub folders: usize,
    /// Levels of the tree, each one and a half times as wide as the one above.
    pub levels: usize,
    /// Files in each folder.
    pub files_per_folder: usize,
    /// Folders held directly by each user (as their owner) and by each team.
    pub held: usize,
    /// Organisations: one that holds the top of the tree, and its subsidiaries.
    pub orgs: usize,
}

impl Shape {
    /// Twenty levels, twenty files a folder, 25 folders held by each user and each team, twenty organisations.
    pub fn of_folders(folders: usize) -> Self {
        Shape { folders, levels: 20, files_per_folder: 20, held: 25, orgs: 20 }
    }
}

/// Somebody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Their name.
    pub name: String,
    /// Whether they count.
    pub active: bool,
}

/// A team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Team {
    /// Its organisation, by number from 0 (as every number here; ids in the database start at 1).
    pub org: u32,
    /// Its name.
    pub name: String,
}

/// A folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// Its organisation.
    pub org: u32,
    /// The folder it is in.
    pub parent: Option<u32>,
    /// Its owner.
    pub owner: u32,
    /// Whether it lets its parent's access in.
    pub inherit: bool,
    /// How far from the top, from 0.
    pub level: u8,
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// The folder it is in.
    pub folder: u32,
    /// Its owner.
    pub owner: u32,
    /// Its name.
    pub name: String,
    /// Whether readers of the folder are kept out.
    pub confidential: bool,
}

/// What a share is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shared {
    /// A folder.
    Folder(u32),
    /// A file.
    File(u32),
}

/// Whom a share is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum With {
    /// One user.
    User(u32),
    /// The members of a team.
    Team(u32),
    /// Every user who is signed in.
    EveryUser,
}

/// A share, made after the policy is in force by someone who may share the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// What is shared.
    pub what: Shared,
    /// `viewer` or `editor`.
    pub relation: &'static str,
    /// With whom.
    pub with: With,
    /// By whom: the object's owner.
    pub by: u32,
}

/// The files: listed, or each one drawn from its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Files {
    Listed(Vec<File>),
    Drawn { folder_of: Vec<u32> },
}

/// The example's data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dataset {
    /// The seed it was made with.
    pub seed: u64,
    /// Names of organisations.
    pub orgs: Vec<String>,
    /// Users.
    pub users: Vec<User>,
    /// Organisation and admin.
    pub org_admins: Vec<(u32, u32)>,
    /// Teams.
    pub teams: Vec<Team>,
    /// Team and member.
    pub team_members: Vec<(u32, u32)>,
    /// Team and the team whose members are its members too.
    pub team_teams: Vec<(u32, u32)>,
    /// Folders, parents before children.
    pub folders: Vec<Folder>,
    /// Names of folders, where they are listed and not drawn from their number.
    pub(crate) folder_names: Option<Vec<String>>,
    /// Folder and the folder it is also shown in.
    pub folder_links: Vec<(u32, u32)>,
    /// Folder and a team that works in it.
    pub folder_teams: Vec<(u32, u32)>,
    pub(crate) files: Files,
    /// Shares.
    pub shares: Vec<Share>,
}

impl Dataset {
    /// The data of a size. Tiny is written by hand and the same for every seed.
    pub fn new(size: Size, seed: u64) -> Self {
        match size {
            Size::Tiny => tiny::dataset(seed),
            Size::Dev => grown::dataset(Shape::of_folders(20_000), seed),
            Size::Large => grown::dataset(Shape::of_folders(50_000), seed),
        }
    }

    /// The data of any shape.
    pub fn grown(shape: Shape, seed: u64) -> Self {
        grown::dataset(shape, seed)
    }

    /// How many files there are.
    pub fn file_count(&self) -> usize {
        match &self.files {
            Files::Listed(files) => files.len(),
            Files::Drawn { folder_of } => folder_of.len(),
        }
    }

    /// A file by its number.
    pub fn file(&self, index: usize) -> Option<File> {
        match &self.files {
            Files::Listed(files) => files.get(index).cloned(),
            Files::Drawn { folder_of } => {
                let folder = *folder_of.get(index)?;
                Some(grown::file(self, index, folder))
            }
        }
    }

    /// A folder's name.
    pub fn folder_name(&self, index: usize) -> String {
        match &self.folder_names {
            Some(names) => names.get(index).cloned().unwrap_or_default(),
            None => grown::folder_name(self.seed, index),
        }
    }

    /// How many rows all tables have together.
    pub fn rows(&self) -> u64 {
        self.tables().iter().map(|table| table.rows).sum()
    }
}

#[cfg(test)]
mod tests;
