//! Where something stands in the policy's text.

/// Index of a file in a [`SourceMap`]; the policy's main file is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct FileId(pub u16);

/// A half-open range of bytes in one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    /// The file the bytes are in.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// A span in `file` from byte `start` to before byte `end`.
    pub fn new(file: FileId, start: usize, end: usize) -> Self {
        let clamp = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Span { file, start: clamp(start), end: clamp(end) }
    }

    /// The smallest span that covers both, which must be of one file; otherwise `self`.
    pub fn to(self, other: Span) -> Span {
        if self.file != other.file {
            return self;
        }
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// A value and where it was written. Equality and hashing look at the value alone.
#[derive(Debug, Clone, Copy)]
pub struct Spanned<T> {
    /// What was written.
    pub value: T,
    /// Where it was written.
    pub span: Span,
}

impl<T: PartialEq> PartialEq for Spanned<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}
impl<T: Eq> Eq for Spanned<T> {}

impl<T> Spanned<T> {
    /// `value` written at `span`.
    pub fn new(value: T, span: Span) -> Self {
        Spanned { value, span }
    }
}

/// One source file.
#[derive(Debug, Clone, Default)]
pub struct SourceFile {
    /// The path as shown to people.
    pub name: String,
    /// Its text.
    pub text: String,
    line_starts: Vec<u32>,
}

/// A place as people count: line and column from 1; columns count characters, not bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// The files of one policy.
#[derive(Debug, Clone, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
}

impl SourceMap {
    /// A map with one file.
    pub fn single(name: impl Into<String>, text: impl Into<String>) -> Self {
        let mut map = SourceMap::default();
        map.add(name, text);
        map
    }

    /// Adds a file; its id is its position.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> FileId {
        let text = text.into();
        let mut line_starts = vec![0];
        for (at, byte) in text.bytes().enumerate() {
            if byte == b'\n' {
                line_starts.push(u32::try_from(at + 1).unwrap_or(u32::MAX));
            }
        }
        let id = FileId(u16::try_from(self.files.len()).unwrap_or(u16::MAX));
        self.files.push(SourceFile { name: name.into(), text, line_starts });
        id
    }

    /// The file with this id, if there is one.
    pub fn file(&self, id: FileId) -> Option<&SourceFile> {
        self.files.get(usize::from(id.0))
    }

    /// All files, the main one first.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// The text under a span (empty where the span does not fall on characters).
    pub fn text(&self, span: Span) -> &str {
        self.file(span.file).and_then(|f| f.text.get(span.start as usize..span.end as usize)).unwrap_or("")
    }

    /// The first place of a span and the place just past its end.
    pub fn places(&self, span: Span) -> (Place, Place) {
        (self.place(span.file, span.start), self.place(span.file, span.end))
    }

    fn place(&self, file: FileId, at: u32) -> Place {
        let Some(file) = self.file(file) else { return Place { line: 1, column: 1 } };
        let line = file.line_starts.partition_point(|start| *start <= at).max(1);
        let start = file.line_starts.get(line - 1).copied().unwrap_or(0) as usize;
        let end = (at as usize).min(file.text.len());
        let column = file.text.as_bytes().get(start..end).map_or(0, |bytes| {
            // Characters are counted by their first bytes, so a span inside one cannot fail.
            bytes.iter().filter(|b| (**b & 0xC0) != 0x80).count()
        });
        Place { line, column: column + 1 }
    }
}
