//! PostgreSQL's binary `COPY` format, as far as keys, numbers and arrays of keys need it.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::db::error::DbError;

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";

/// The start of a stream.
pub(super) fn header() -> BytesMut {
    let mut out = BytesMut::with_capacity(300 * 1024);
    out.put_slice(SIGNATURE);
    out.put_i32(0);
    out.put_i32(0);
    out
}

/// The end of a stream.
pub(super) fn trailer(out: &mut BytesMut) {
    out.put_i16(-1);
}

/// The element type of an array of keys.
pub(super) fn element_oid(key_type: &str) -> Result<u32, DbError> {
    Ok(match key_type {
        "bigint" => 20,
        "smallint" => 21,
        "integer" => 23,
        "text" => 25,
        "uuid" => 2950,
        other => return Err(DbError::Unexpected(format!("keys of type {other}"))),
    })
}

/// One row being written.
pub(super) struct Writer(BytesMut);

impl Writer {
    /// A row of so many fields.
    pub(super) fn row(fields: i16) -> Writer {
        let mut out = BytesMut::with_capacity(128);
        out.put_i16(fields);
        Writer(out)
    }

    pub(super) fn i64(mut self, value: i64) -> Writer {
        self.0.put_i32(8);
        self.0.put_i64(value);
        self
    }

    pub(super) fn i32(mut self, value: i32) -> Writer {
        self.0.put_i32(4);
        self.0.put_i32(value);
        self
    }

    pub(super) fn bytes(mut self, value: &[u8]) -> Writer {
        put(&mut self.0, value);
        self
    }

    pub(super) fn array<'a>(mut self, element: u32, items: impl ExactSizeIterator<Item = &'a [u8]>) -> Writer {
        let at = self.0.len();
        self.0.put_i32(0);
        let n = length(items.len());
        self.0.put_i32(i32::from(n > 0));
        self.0.put_i32(0);
        self.0.put_u32(element);
        if n > 0 {
            self.0.put_i32(n);
            self.0.put_i32(1);
            items.for_each(|i| put(&mut self.0, i));
        }
        let whole = length(self.0.len() - at - 4);
        if let Some(slot) = self.0.get_mut(at..at + 4) {
            slot.copy_from_slice(&whole.to_be_bytes());
        }
        self
    }

    pub(super) fn append_to(&self, out: &mut BytesMut) {
        out.extend_from_slice(&self.0);
    }
}

fn put(out: &mut BytesMut, value: &[u8]) {
    out.put_i32(length(value.len()));
    out.put_slice(value);
}

/// Lengths on the wire are 32 bits; PostgreSQL refuses a field of 1 GB before this could overflow.
fn length(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

/// A whole stream being read.
pub(super) struct Reader(Bytes);

impl Reader {
    pub(super) fn new(mut stream: Bytes) -> Result<Reader, DbError> {
        if stream.get(..SIGNATURE.len()) != Some(SIGNATURE) || stream.len() < SIGNATURE.len() + 8 {
            return Err(cut());
        }
        stream.advance(SIGNATURE.len() + 4);
        let extension = usize::try_from(stream.get_i32()).map_err(|_| cut())?;
        take(&mut stream, extension)?;
        Ok(Reader(stream))
    }

    /// The next row, of fields that are not NULL.
    pub(super) fn row<const N: usize>(&mut self) -> Result<Option<[Bytes; N]>, DbError> {
        let fields = self.0.try_get_i16().map_err(|_| cut())?;
        if fields == -1 {
            return Ok(None);
        }
        if usize::try_from(fields).ok() != Some(N) {
            return Err(DbError::Unexpected(format!("a row of {fields} columns where {N} were asked for")));
        }
        let mut out = [const { Bytes::new() }; N];
        for field in &mut out {
            let n = self.0.try_get_i32().map_err(|_| cut())?;
            let n = usize::try_from(n).map_err(|_| DbError::Unexpected("NULL where a key was asked for".to_owned()))?;
            *field = take(&mut self.0, n)?;
        }
        Ok(Some(out))
    }
}

fn take(stream: &mut Bytes, n: usize) -> Result<Bytes, DbError> {
    if n > stream.len() { Err(cut()) } else { Ok(stream.split_to(n)) }
}

fn cut() -> DbError {
    DbError::Unexpected("a COPY stream that ends too early".to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        let mut out = header();
        Writer::row(2).i64(7).bytes(b"key").append_to(&mut out);
        trailer(&mut out);
        let mut reader = Reader::new(out.freeze()).unwrap();
        let [a, b] = reader.row().unwrap().unwrap();
        assert_eq!((a.as_ref(), b.as_ref()), (&7i64.to_be_bytes()[..], &b"key"[..]));
        assert!(reader.row::<2>().unwrap().is_none());
        assert!(reader.row::<2>().is_err());
        assert!(Reader::new(Bytes::from_static(b"PGCOPY")).is_err());
    }
}
