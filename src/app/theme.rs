//! Colour themes: each a TOML file that gives every role a style. States are words first; colour comes second, so the
//! `mono` theme (also under `NO_COLOR`) tells everything the others do.

use std::collections::BTreeMap;

use ratatui::style::{Color, Modifier, Style};
use serde::Deserialize;

/// The themes that come with rowdeck, by name; the first is the default.
pub const THEMES: &[(&str, &str)] = &[
    ("ansi16", include_str!("../../themes/ansi16.toml")),
    ("dark", include_str!("../../themes/dark.toml")),
    ("light", include_str!("../../themes/light.toml")),
    ("mono", include_str!("../../themes/mono.toml")),
    ("high-contrast", include_str!("../../themes/high-contrast.toml")),
];

/// How many colours a terminal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Depth {
    /// The sixteen of every terminal, in the terminal's own shades.
    #[serde(rename = "16")]
    Sixteen,
    /// The 256 of xterm.
    #[serde(rename = "256")]
    Xterm,
    /// Any.
    #[serde(rename = "truecolour", alias = "truecolor")]
    True,
}

impl Depth {
    /// What this environment says, asking the terminal nothing.
    pub fn of(environment: &dyn Fn(&str) -> Option<String>) -> Depth {
        let holds = |name: &str, words: &[&str]| {
            environment(name).is_some_and(|value| words.iter().any(|word| value.contains(word)))
        };
        if holds("COLORTERM", &["truecolor", "24bit"]) || holds("TERM", &["-direct"]) {
            Depth::True
        } else if holds("TERM", &["256color"]) {
            Depth::Xterm
        } else {
            Depth::Sixteen
        }
    }
}

/// What a piece of the screen means; a theme gives each a style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Ordinary text.
    Text,
    /// Less important text; still readable.
    Dim,
    /// Frames.
    Border,
    /// The frame of what has the keys.
    Focus,
    /// Titles.
    Title,
    /// The line that says where we are connected.
    Header,
    /// A flag in the header that an operator must not miss.
    Danger,
    /// Fine.
    Ok,
    /// Worth a look.
    Warn,
    /// Wrong.
    Error,
    /// The marked line or answer.
    Selected,
    /// A key in the hints.
    Key,
    /// Policy keywords.
    Keyword,
    /// Names in the policy.
    Name,
    /// SQL inside braces and SQL statements.
    Sql,
    /// Comments.
    Comment,
    /// Line numbers.
    Gutter,
}

/// A style for every role.
#[derive(Debug, Clone, PartialEq)]
pub struct Theme {
    /// Its name.
    pub name: String,
    /// Draw frames and marks with ASCII only.
    pub ascii: bool,
    /// How many colours the terminal has.
    depth: Depth,
    /// The theme that was asked for, when the terminal has too few colours for it.
    asked: Option<String>,
    base: Style,
    styles: BTreeMap<&'static str, Style>,
}

const ROLES: &[(Role, &str)] = &[
    (Role::Text, "text"),
    (Role::Dim, "dim"),
    (Role::Border, "border"),
    (Role::Focus, "focus"),
    (Role::Title, "title"),
    (Role::Header, "header"),
    (Role::Danger, "danger"),
    (Role::Ok, "ok"),
    (Role::Warn, "warn"),
    (Role::Error, "error"),
    (Role::Selected, "selected"),
    (Role::Key, "key"),
    (Role::Keyword, "keyword"),
    (Role::Name, "name"),
    (Role::Sql, "sql"),
    (Role::Comment, "comment"),
    (Role::Gutter, "gutter"),
];

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct StyleFile {
    fg: Option<String>,
    bg: Option<String>,
    #[serde(default)]
    bold: bool,
    #[serde(default)]
    underline: bool,
    #[serde(default)]
    reverse: bool,
    #[serde(default)]
    italic: bool,
}

impl Theme {
    /// Reads a theme from TOML.
    ///
    /// # Errors
    /// Names what is unknown, missing or no colour.
    pub fn read(name: &str, text: &str) -> Result<Self, String> {
        let file: BTreeMap<String, StyleFile> = toml::from_str(text).map_err(|e| format!("theme {name}: {e}"))?;
        let mut styles = BTreeMap::new();
        for (_, role) in ROLES {
            let style = file.get(*role).ok_or_else(|| format!("theme {name}: {role} has no style"))?;
            styles.insert(*role, read_style(name, role, style)?);
        }
        if let Some(unknown) = file.keys().find(|key| !ROLES.iter().any(|(_, role)| role == key)) {
            return Err(format!("theme {name}: there is no {unknown}"));
        }
        let base = styles.get("text").copied().unwrap_or_default();
        Ok(Theme { name: name.to_owned(), ascii: false, depth: Depth::True, asked: None, base, styles })
    }

    /// A theme that comes with rowdeck.
    ///
    /// # Errors
    /// Names the themes there are when this is none of them.
    pub fn named(name: &str) -> Result<Self, String> {
        let Some((known, text)) = THEMES.iter().find(|(known, _)| *known == name) else {
            let names: Vec<&str> = THEMES.iter().map(|(known, _)| *known).collect();
            return Err(format!("there is no theme {name:?}; there are {}", names.join(", ")));
        };
        Theme::read(known, text)
    }

    /// The theme after this one.
    pub fn next(&self) -> Self {
        let at = THEMES.iter().position(|(name, _)| *name == self.name).map_or(0, |at| (at + 1) % THEMES.len());
        let read = (at..at + THEMES.len()).find_map(|at| {
            let (name, text) = THEMES.get(at % THEMES.len())?;
            let theme = Theme::read(name, text).ok()?;
            (self.depth > Depth::Sixteen || !theme.exact()).then_some(theme)
        });
        read.map_or_else(|| self.clone(), |theme| Theme { ascii: self.ascii, ..theme.reduced(self.depth) })
    }

    /// The theme for this environment: `wanted`, else `mono` where `NO_COLOR` is set or the terminal is dumb, else the
    /// default; ASCII only outside a UTF-8 locale.
    ///
    /// # Errors
    /// When `wanted` is no theme.
    pub fn choose(
        wanted: Option<&str>,
        depth: Option<Depth>,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let set = |name: &str| environment(name).filter(|value| !value.is_empty());
        let dumb = set("TERM").is_some_and(|term| term == "dumb" || term.starts_with("vt1"));
        let name = match wanted {
            _ if set("NO_COLOR").is_some() => "mono",
            Some(name) => name,
            None if dumb => "mono",
            None => "ansi16",
        };
        let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
        let utf8 = locale.is_some_and(|l| {
            let l = l.to_ascii_lowercase();
            l.contains("utf-8") || l.contains("utf8")
        });
        let depth = depth.unwrap_or_else(|| Depth::of(environment));
        let theme = Theme::named(name)?;
        if depth == Depth::Sixteen && theme.exact() {
            // Sixteen colours whose shades are the terminal's cannot stand for a theme that sets its own background.
            let plain = Theme::named("ansi16")?;
            return Ok(Theme { ascii: !utf8, depth, asked: Some(theme.name), ..plain });
        }
        Ok(Theme { ascii: !utf8, ..theme.reduced(depth) })
    }

    /// It sets colours by their exact shade.
    fn exact(&self) -> bool {
        let exact = |colour: Option<Color>| matches!(colour, Some(Color::Rgb(..)));
        self.styles.values().any(|style| exact(style.fg) || exact(style.bg))
    }

    /// The same in as many colours as the terminal has.
    pub fn reduced(mut self, depth: Depth) -> Self {
        self.depth = depth;
        if depth == Depth::Xterm {
            for style in self.styles.values_mut().chain(std::iter::once(&mut self.base)) {
                (style.fg, style.bg) = (style.fg.map(nearest), style.bg.map(nearest));
            }
        }
        self
    }

    /// What to say about the choice, when it is not what was asked for.
    pub fn words(&self) -> Option<String> {
        let asked = self.asked.as_ref()?;
        Some(format!("this terminal says it has 16 colours, so the theme is {} and not {asked}", self.name))
    }

    /// The style of a role, over the theme's ordinary text.
    pub fn style(&self, role: Role) -> Style {
        let name = ROLES.iter().find(|(known, _)| *known == role).map_or("text", |(_, name)| name);
        self.base.patch(self.styles.get(name).copied().unwrap_or_default())
    }

    /// Every role's name with its style, for tests.
    pub fn styles(&self) -> impl Iterator<Item = (&'static str, Style)> + '_ {
        ROLES.iter().map(|(role, name)| (*name, self.style(*role)))
    }
}

/// The shades of xterm's colour cube.
const CUBE: [u8; 6] = [0, 95, 135, 175, 215, 255];

/// The shade of one of the 240 colours of xterm that are the same everywhere.
pub fn xterm(index: u8) -> Option<(u8, u8, u8)> {
    let at = index.checked_sub(16)?;
    if at >= 216 {
        let grey = 8 + 10 * (at - 216);
        return Some((grey, grey, grey));
    }
    let part = |n: u8| CUBE.get(usize::from(n % 6)).copied();
    Some((part(at / 36)?, part(at / 6)?, part(at)?))
}

fn nearest(colour: Color) -> Color {
    let Color::Rgb(r, g, b) = colour else { return colour };
    let far = |index: u8| {
        let (x, y, z) = xterm(index).unwrap_or_default();
        let part = |a: u8, b: u8| u32::from(a.abs_diff(b)).pow(2);
        part(r, x) + part(g, y) + part(b, z)
    };
    Color::Indexed((16..=255).min_by_key(|index| far(*index)).unwrap_or(16))
}

fn read_style(theme: &str, role: &str, file: &StyleFile) -> Result<Style, String> {
    let colour = |text: &Option<String>| -> Result<Option<Color>, String> {
        text.as_ref()
            .map(|t| t.parse::<Color>().map_err(|_| format!("theme {theme}: {role}: {t:?} is no colour")))
            .transpose()
    };
    let mut style = Style::default();
    if let Some(fg) = colour(&file.fg)? {
        style = style.fg(fg);
    }
    if let Some(bg) = colour(&file.bg)? {
        style = style.bg(bg);
    }
    for (on, modifier) in [
        (file.bold, Modifier::BOLD),
        (file.underline, Modifier::UNDERLINED),
        (file.reverse, Modifier::REVERSED),
        (file.italic, Modifier::ITALIC),
    ] {
        if on {
            style = style.add_modifier(modifier);
        }
    }
    Ok(style)
}
