//! Conditions as expressions.

use super::super::facts::Datum;
use super::{Compare, Function, Query, Sql};
use crate::compiler::ident::{Ident, QualName};
use crate::compiler::sql::{Piece, PieceKind, meaningful};

/// Deeper conditions are reported, not evaluated.
const DEEPEST: usize = 100;

/// The expression, or what in it is not known here.
///
/// # Errors
/// The words that could not be read, for a message.
pub fn parse(text: &str) -> Result<Sql, String> {
    let pieces: Vec<Piece<'_>> = meaningful(text).collect();
    let mut parser = Parser { pieces: &pieces, at: 0, depth: 0 };
    let sql = parser.expression()?;
    match parser.peek() {
        None => Ok(sql),
        Some(_) => Err(parser.unknown()),
    }
}

struct Parser<'a> {
    pieces: &'a [Piece<'a>],
    at: usize,
    depth: usize,
}

type Parsed = Result<Sql, String>;

fn boxed(a: Sql, b: Sql) -> (Box<Sql>, Box<Sql>) {
    (Box::new(a), Box::new(b))
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a Piece<'a>> {
        self.pieces.get(self.at)
    }

    fn second(&self) -> Option<&'a Piece<'a>> {
        self.pieces.get(self.at + 1)
    }

    fn next(&mut self) -> Option<&'a Piece<'a>> {
        let piece = self.pieces.get(self.at);
        self.at += 1;
        piece
    }

    /// What stands here, for a message.
    fn unknown(&self) -> String {
        match self.peek() {
            Some(_) => self.pieces.iter().skip(self.at).take(3).map(|piece| piece.text).collect::<Vec<_>>().join(" "),
            None => "its end".to_owned(),
        }
    }

    fn word(&mut self, word: &str) -> bool {
        let found = self.peek().is_some_and(|piece| piece.is_word(word));
        self.at += usize::from(found);
        found
    }

    fn mark(&mut self, mark: &str) -> bool {
        let found = self.peek().is_some_and(|piece| piece.is_punctuation(mark));
        self.at += usize::from(found);
        found
    }

    fn need(&mut self, mark: &str) -> Result<(), String> {
        if self.mark(mark) { Ok(()) } else { Err(self.unknown()) }
    }

    /// An operator of one or two characters, which stand together.
    fn operator(&mut self, text: &str) -> bool {
        let mut place: Option<usize> = None;
        for (ahead, c) in text.chars().enumerate() {
            let Some(piece) = self.pieces.get(self.at + ahead) else { return false };
            let follows = place.is_none_or(|before| piece.at == before + 1);
            if !follows || !piece.is_punctuation(c.encode_utf8(&mut [0; 4])) {
                return false;
            }
            place = Some(piece.at);
        }
        self.at += text.len();
        true
    }

    fn expression(&mut self) -> Parsed {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("so many parentheses".to_owned());
        }
        let mut left = self.conjunction()?;
        while self.word("or") {
            let (a, b) = boxed(left, self.conjunction()?);
            left = Sql::Or(a, b);
        }
        self.depth -= 1;
        Ok(left)
    }

    fn conjunction(&mut self) -> Parsed {
        let mut left = self.negation()?;
        while self.word("and") {
            let (a, b) = boxed(left, self.negation()?);
            left = Sql::And(a, b);
        }
        Ok(left)
    }

    fn negation(&mut self) -> Parsed {
        let mut times = 0;
        while self.word("not") {
            times += 1;
        }
        let mut inner = self.test()?;
        for _ in 0..times {
            inner = Sql::Not(Box::new(inner));
        }
        Ok(inner)
    }

    /// `comparison [IS ...]`
    fn test(&mut self) -> Parsed {
        let mut left = self.comparison()?;
        while self.word("is") {
            let not = self.word("not");
            left = if self.word("null") || self.word("unknown") {
                Sql::Is(Box::new(left), Datum::Null, not)
            } else if self.word("true") {
                Sql::Is(Box::new(left), Datum::Bool(true), not)
            } else if self.word("false") {
                Sql::Is(Box::new(left), Datum::Bool(false), not)
            } else if self.word("distinct") && self.word("from") {
                let (a, b) = boxed(left, self.membership()?);
                Sql::Distinct(a, b, !not)
            } else {
                return Err(self.unknown());
            };
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Parsed {
        let left = self.membership()?;
        const OPERATORS: [(&str, Compare); 7] = [
            ("<=", Compare::AtMost),
            (">=", Compare::AtLeast),
            ("<>", Compare::Unequal),
            ("!=", Compare::Unequal),
            ("=", Compare::Equal),
            ("<", Compare::Less),
            (">", Compare::More),
        ];
        for (text, compare) in OPERATORS {
            if self.operator(text) {
                let (a, b) = boxed(left, self.membership()?);
                return Ok(Sql::Compare(compare, a, b));
            }
        }
        Ok(left)
    }

    /// `sum [NOT] IN (...)`, `sum [NOT] BETWEEN a AND b`
    fn membership(&mut self) -> Parsed {
        let left = self.sum()?;
        let before = self.at;
        let not = self.word("not");
        let found = if self.word("in") {
            self.need("(")?;
            let found = if self.peek().is_some_and(|p| p.is_word("select")) {
                Sql::InQuery(Box::new(left), Box::new(self.query(true)?))
            } else {
                Sql::In(Box::new(left), self.list()?)
            };
            self.need(")")?;
            found
        } else if self.word("between") {
            let low = self.sum()?;
            if !self.word("and") {
                return Err(self.unknown());
            }
            let high = self.sum()?;
            let (a, low) = boxed(left.clone(), low);
            let (b, high) = boxed(left, high);
            let (low, high) = boxed(Sql::Compare(Compare::AtLeast, a, low), Sql::Compare(Compare::AtMost, b, high));
            Sql::And(low, high)
        } else {
            self.at = before;
            return Ok(left);
        };
        Ok(if not { Sql::Not(Box::new(found)) } else { found })
    }

    fn list(&mut self) -> Result<Vec<Sql>, String> {
        let mut list = vec![self.expression()?];
        while self.mark(",") {
            list.push(self.expression()?);
        }
        Ok(list)
    }

    fn sum(&mut self) -> Parsed {
        let mut left = self.product()?;
        loop {
            let operator = if self.operator("||") {
                '|'
            } else if self.mark("+") {
                '+'
            } else if self.mark("-") {
                '-'
            } else {
                return Ok(left);
            };
            let (a, b) = boxed(left, self.product()?);
            left = Sql::Arithmetic(operator, a, b);
        }
    }

    fn product(&mut self) -> Parsed {
        let mut left = self.cast()?;
        loop {
            let operator = if self.mark("*") {
                '*'
            } else if self.mark("/") {
                '/'
            } else if self.mark("%") {
                '%'
            } else {
                return Ok(left);
            };
            let (a, b) = boxed(left, self.cast()?);
            left = Sql::Arithmetic(operator, a, b);
        }
    }

    fn cast(&mut self) -> Parsed {
        let mut inner = self.primary()?;
        while self.operator("::") {
            let ty = self.next().map(|piece| piece.text.to_lowercase()).unwrap_or_default();
            let function = match ty.as_str() {
                "bigint" | "integer" | "int" | "smallint" | "int8" | "int4" => Function::ToInteger,
                "text" | "varchar" => Function::ToText,
                "boolean" | "bool" => Function::ToBool,
                other => return Err(format!(":: {other}")),
            };
            inner = Sql::Call(function, vec![inner]);
        }
        Ok(inner)
    }

    fn primary(&mut self) -> Parsed {
        let Some(piece) = self.peek() else { return Err(self.unknown()) };
        match piece.kind {
            PieceKind::Punctuation if piece.text == "-" => {
                self.at += 1;
                let (zero, inner) = boxed(Sql::Value(Datum::Int(0)), self.cast()?);
                Ok(Sql::Arithmetic('-', zero, inner))
            }
            PieceKind::Punctuation if piece.text == "(" => {
                self.at += 1;
                if self.peek().is_some_and(|p| p.is_word("select")) {
                    return Err(self.unknown());
                }
                let inner = self.expression()?;
                self.need(")")?;
                Ok(inner)
            }
            PieceKind::Number => {
                let number = piece.text.parse().map_err(|_| self.unknown())?;
                self.at += 1;
                Ok(Sql::Value(Datum::Int(number)))
            }
            PieceKind::Text => {
                let text = plain_text(piece.text).ok_or_else(|| self.unknown())?;
                self.at += 1;
                Ok(Sql::Value(Datum::Text(text)))
            }
            PieceKind::Word | PieceKind::Quoted => self.named(),
            _ => Err(self.unknown()),
        }
    }

    /// What begins with a name.
    fn named(&mut self) -> Parsed {
        for (word, value) in [("true", Datum::Bool(true)), ("false", Datum::Bool(false)), ("null", Datum::Null)] {
            if self.word(word) {
                return Ok(Sql::Value(value));
            }
        }
        if self.word("current_timestamp") {
            return Ok(Sql::Now);
        }
        if self.word("exists") {
            self.need("(")?;
            let query = self.query(false)?;
            self.need(")")?;
            return Ok(Sql::Exists(Box::new(query)));
        }
        const REFUSED: [&str; 9] =
            ["case", "array", "row", "select", "any", "all", "interval", "current_user", "session_user"];
        let called = self.second().is_some_and(|p| p.is_punctuation("("));
        if called || self.peek().is_some_and(|p| REFUSED.iter().any(|word| p.is_word(word))) {
            return self.call();
        }
        let first = self.name()?;
        if !self.mark(".") {
            return Ok(Sql::Column(None, first.1));
        }
        let authz = first.0.eq_ignore_ascii_case("authz") && self.second().is_some_and(|p| p.is_punctuation("("));
        if authz {
            return self.authz();
        }
        let second = self.name()?;
        if self.peek().is_some_and(|p| p.is_punctuation(".") || p.is_punctuation("(")) {
            return Err(format!("{}.{}{}", first.0, second.0, self.peek().map(|p| p.text).unwrap_or_default()));
        }
        Ok(if first.0.eq_ignore_ascii_case("this") {
            Sql::This(second.1)
        } else {
            Sql::Column(Some(first.1), second.1)
        })
    }

    /// A name as written, and as SQL reads it.
    fn name(&mut self) -> Result<(&'a str, Ident), String> {
        let unknown = self.unknown();
        match self.next() {
            Some(piece) if piece.kind == PieceKind::Word => Ok((piece.text, Ident::new(piece.text.to_lowercase()))),
            Some(piece) if piece.kind == PieceKind::Quoted => {
                let inner = piece.text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).ok_or(unknown)?;
                Ok((piece.text, Ident::new(inner.replace("\"\"", "\""))))
            }
            _ => Err(unknown),
        }
    }

    /// `uid()` and `ctx('key')`, after `authz.`
    fn authz(&mut self) -> Parsed {
        let unknown = format!("authz.{}", self.unknown());
        let (name, _) = self.name()?;
        self.need("(")?;
        let found = if name.eq_ignore_ascii_case("uid") {
            Sql::Uid
        } else if name.eq_ignore_ascii_case("ctx") {
            Sql::Context(self.text()?)
        } else {
            return Err(unknown);
        };
        self.need(")")?;
        Ok(found)
    }

    fn text(&mut self) -> Result<String, String> {
        let unknown = self.unknown();
        let piece = self.next().filter(|piece| piece.kind == PieceKind::Text);
        piece.and_then(|piece| plain_text(piece.text)).ok_or(unknown)
    }

    /// `function(arguments)`
    fn call(&mut self) -> Parsed {
        let unknown = self.unknown();
        let (name, _) = self.name()?;
        self.need("(").map_err(|_| unknown.clone())?;
        let function = match name.to_lowercase().as_str() {
            "now" => {
                self.need(")")?;
                return Ok(Sql::Now);
            }
            "arg" => {
                let name = self.text()?;
                self.need(")")?;
                return Ok(Sql::Argument(name));
            }
            "coalesce" => Function::Coalesce,
            "nullif" => Function::NullIf,
            "lower" => Function::Lower,
            "upper" => Function::Upper,
            "length" => Function::Length,
            "abs" => Function::Abs,
            _ => return Err(unknown),
        };
        let list = self.list()?;
        self.need(")")?;
        let fits = match function {
            Function::Coalesce => true,
            Function::NullIf => list.len() == 2,
            _ => list.len() == 1,
        };
        if fits { Ok(Sql::Call(function, list)) } else { Err(unknown) }
    }

    /// `SELECT [columns] FROM schema.table [AS] [alias] [WHERE condition]`
    fn query(&mut self, of_one_column: bool) -> Result<Query, String> {
        if !self.word("select") {
            return Err(self.unknown());
        }
        let mut column = None;
        if of_one_column {
            column = Some(self.expression()?);
        } else if !self.mark("*") && !self.peek().is_some_and(|p| p.is_word("from")) {
            self.list()?;
        }
        if !self.word("from") {
            return Err(self.unknown());
        }
        let (schema, name) = (self.name()?.1, self.qualified()?);
        let table = QualName { schema, name };
        let named = self.word("as")
            || self.peek().is_some_and(|p| {
                matches!(p.kind, PieceKind::Word | PieceKind::Quoted) && !p.is_word("where") && !p.is_word("join")
            });
        let alias = if named { self.name()?.1 } else { table.name.clone() };
        let condition = if self.word("where") { Some(self.expression()?) } else { None };
        Ok(Query { column, table, alias, condition })
    }

    fn qualified(&mut self) -> Result<Ident, String> {
        self.need(".")?;
        Ok(self.name()?.1)
    }
}

/// The text of a plain string literal; `None` for one with escapes or a prefix.
fn plain_text(literal: &str) -> Option<String> {
    let inner = literal.strip_prefix('\'')?.strip_suffix('\'')?;
    Some(inner.replace("''", "'"))
}
