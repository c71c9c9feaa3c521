//! Values on their way to PostgreSQL and back. Its tables have the types of SQLite's: whole numbers (flags too), reals,
//! texts and bytes. What an expression gives may have others (a comparison is a boolean, a sum a numeric), and is read all the same.

use crate::ids::{AccountId, AnswerId, ExecutionId, ParticipantId, RunId, StudyId, TeacherId};
use crate::store::{InviteId, SessionId, TokenId};
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::{Arguments, Row, TypeInfo, ValueRef};

/// A parameter as it is sent.
#[derive(Clone, Debug)]
pub(in crate::store) enum Value<'a> {
    Integer(Option<i64>),
    Real(Option<f64>),
    Text(Option<&'a str>),
    Bytes(Option<&'a [u8]>),
}

/// A type that can be a statement's parameter.
pub(in crate::store) trait Bind {
    /// A missing value of this type.
    const NULL: Value<'static>;

    fn value(&self) -> Value<'_>;
}

/// The parameters of a statement in their order.
pub(in crate::store) fn bind(values: &[Value<'_>]) -> Result<PgArguments, BoxDynError> {
    let mut arguments = PgArguments::default();
    for value in values {
        match value {
            Value::Integer(value) => arguments.add(*value)?,
            Value::Real(value) => arguments.add(*value)?,
            Value::Text(value) => arguments.add(value.map(escape))?,
            Value::Bytes(value) => arguments.add(*value)?,
        }
    }
    Ok(arguments)
}

/// A character of the private use area that begins an escape.
const ESCAPE: char = '\u{F8FF}';

/// PostgreSQL's texts hold every character but NUL, and a text comes back exactly as it was typed: NUL, and the character that
/// begins the escape, are stored as two characters.
fn escape(text: &str) -> std::borrow::Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return text.into();
    }
    text.replace(ESCAPE, "\u{F8FF}1").replace('\0', "\u{F8FF}0").into()
}

/// Undoes [`escape`].
fn unescape(text: String) -> String {
    if !text.contains(ESCAPE) {
        return text;
    }
    text.replace("\u{F8FF}0", "\0").replace("\u{F8FF}1", "\u{F8FF}")
}

impl<T: Bind + ?Sized> Bind for &T {
    const NULL: Value<'static> = T::NULL;

    fn value(&self) -> Value<'_> {
        (**self).value()
    }
}

impl<T: Bind> Bind for Option<T> {
    const NULL: Value<'static> = T::NULL;

    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Self::NULL, T::value)
    }
}

/// A type that a row can be read as.
pub(in crate::store) trait FromPostgres: Sized {
    fn from_row(row: &PgRow) -> sqlx::Result<Self>;
}

/// A type that a column can be read as.
pub(in crate::store) trait Column: Sized {
    fn read(row: &PgRow, name: &str) -> sqlx::Result<Self> {
        match Self::read_optional(row, name)? {
            Some(value) => Ok(value),
            None => Err(failed(name, "there is no value")),
        }
    }

    /// `None` for a missing value.
    fn read_optional(row: &PgRow, name: &str) -> sqlx::Result<Option<Self>>;
}

impl<T: Column> Column for Option<T> {
    fn read(row: &PgRow, name: &str) -> sqlx::Result<Self> {
        T::read_optional(row, name)
    }

    fn read_optional(row: &PgRow, name: &str) -> sqlx::Result<Option<Self>> {
        T::read_optional(row, name).map(Some)
    }
}

/// The only column of a row.
impl<T: Column> FromPostgres for T {
    fn from_row(row: &PgRow) -> sqlx::Result<Self> {
        let name = row.columns().first().map_or("", sqlx::Column::name);
        T::read(row, name)
    }
}

fn failed(name: &str, why: impl Into<BoxDynError>) -> sqlx::Error {
    sqlx::Error::ColumnDecode { index: name.to_owned(), source: why.into() }
}

/// A number, whatever type an expression has given it.
enum Number {
    Integer(i64),
    Real(f64),
}

fn number(row: &PgRow, name: &str) -> sqlx::Result<Option<Number>> {
    let raw = row.try_get_raw(name)?;
    if raw.is_null() {
        return Ok(None);
    }
    let number = match raw.type_info().name() {
        "INT8" => Number::Integer(row.try_get(name)?),
        "INT4" => Number::Integer(row.try_get::<i32, _>(name)?.into()),
        "BOOL" => Number::Integer(row.try_get::<bool, _>(name)?.into()),
        "FLOAT8" => Number::Real(row.try_get(name)?),
        "NUMERIC" => numeric(raw.as_bytes().map_err(|error| failed(name, error))?)
            .ok_or_else(|| failed(name, "the number is none that is expected here"))?,
        other => return Err(failed(name, format!("{other} is no number"))),
    };
    Ok(Some(number))
}

/// PostgreSQL's binary form of a numeric: four numbers of 16 bits (count of digits, weight of the first, sign, digits shown
/// after the point), and the digits to the base 10,000.
fn numeric(bytes: &[u8]) -> Option<Number> {
    let mut halves = bytes.chunks_exact(2).map(|pair| i16::from_be_bytes([pair[0], pair[1]]));
    let (count, weight, sign, _) = (halves.next()?, halves.next()?, halves.next()?, halves.next()?);
    let sign = match sign {
        0x0000 => 1,
        0x4000 => -1,
        _ => return None,
    };
    let digits: Vec<i64> = halves.take(usize::try_from(count).ok()?).map(i64::from).collect();
    let whole = usize::try_from(weight + 1).unwrap_or(0);
    if digits.len() <= whole {
        let mut value = 0i64;
        for place in 0..whole {
            value = value.checked_mul(10_000)?.checked_add(digits.get(place).copied().unwrap_or(0))?;
        }
        return Some(Number::Integer(sign * value));
    }
    let parts = digits.iter().zip(0..).map(|(&digit, place)| digit as f64 * 10_000f64.powi(i32::from(weight) - place));
    Some(Number::Real(sign as f64 * parts.sum::<f64>()))
}

/// Implements [`Bind`] and [`Column`] for types of numbers.
macro_rules! integers {
    ($($type:ty),*) => {
        $(
            impl Bind for $type {
                const NULL: Value<'static> = Value::Integer(None);

                fn value(&self) -> Value<'_> {
                    Value::Integer(Some(i64::from(*self)))
                }
            }

            impl Column for $type {
                fn read_optional(row: &PgRow, name: &str) -> sqlx::Result<Option<Self>> {
                    match number(row, name)? {
                        None => Ok(None),
                        Some(Number::Integer(value)) => <$type>::try_from(value).map(Some).map_err(|e| failed(name, e)),
                        Some(Number::Real(_)) => Err(failed(name, "the number is no whole one")),
                    }
                }
            }
        )*
    };
}

integers!(i64, i32, u32, u16, u8);

impl Bind for bool {
    const NULL: Value<'static> = Value::Integer(None);

    fn value(&self) -> Value<'_> {
        Value::Integer(Some((*self).into()))
    }
}

impl Column for bool {
    fn read_optional(row: &PgRow, name: &str) -> sqlx::Result<Option<Self>> {
        Ok(i64::read_optional(row, name)?.map(|flag| flag != 0))
    }
}

impl Bind for f64 {
    const NULL: Value<'static> = Value::Real(None);

    fn value(&self) -> Value<'_> {
        // SQLite keeps "not a number" as a missing value.
        Value::Real((!self.is_nan()).then_some(*self))
    }
}

impl Column for f64 {
    fn read_optional(row: &PgRow, name: &str) -> sqlx::Result<Option<Self>> {
        Ok(number(row, name)?.map(|number| match number {
            Number::Integer(value) => value as f64,
            Number::Real(value) => value,
        }))
    }
}

impl Bind for str {
    const NULL: Value<'static> = Value::Text(None);

    fn value(&self) -> Value<'_> {
        Value::Text(Some(self))
    }
}

impl Bind for String {
    const NULL: Value<'static> = Value::Text(None);

    fn value(&self) -> Value<'_> {
        Value::Text(Some(self))
    }
}

impl Column for String {
    fn read_optional(row: &PgRow, name: &str) -> sqlx::Result<Option<Self>> {
        Ok(row.try_get::<Option<String>, _>(name)?.map(unescape))
    }
}

impl Bind for [u8] {
    const NULL: Value<'static> = Value::Bytes(None);

    fn value(&self) -> Value<'_> {
        Value::Bytes(Some(self))
    }
}

impl Bind for Vec<u8> {
    const NULL: Value<'static> = Value::Bytes(None);

    fn value(&self) -> Value<'_> {
        Value::Bytes(Some(self))
    }
}

impl Column for Vec<u8> {
    fn read_optional(row: &PgRow, name: &str) -> sqlx::Result<Option<Self>> {
        row.try_get(name)
    }
}

/// Implements both for keys that the database numbers.
macro_rules! numbered_keys {
    ($($key:ident),* $(,)?) => {
        $(
            impl Bind for $key {
                const NULL: Value<'static> = Value::Integer(None);

                fn value(&self) -> Value<'_> {
                    Value::Integer(Some(self.0))
                }
            }

            impl Column for $key {
                fn read_optional(row: &PgRow, name: &str) -> sqlx::Result<Option<Self>> {
                    Ok(i64::read_optional(row, name)?.map($key))
                }
            }
        )*
    };
}

numbered_keys!(ExecutionId, AnswerId, ParticipantId, TeacherId, AccountId, InviteId, SessionId, TokenId);

/// Implements both for keys that are names.
macro_rules! named_keys {
    ($($key:ty),* $(,)?) => {
        $(
            impl Bind for $key {
                const NULL: Value<'static> = Value::Text(None);

                fn value(&self) -> Value<'_> {
                    Value::Text(Some(self.as_str()))
                }
            }

            impl Column for $key {
                fn read_optional(row: &PgRow, name: &str) -> sqlx::Result<Option<Self>> {
                    Ok(String::read_optional(row, name)?.map(Self::from))
                }
            }
        )*
    };
}

named_keys!(RunId, StudyId);

#[cfg(test)]
mod tests {
    use super::{Number, escape, numeric, unescape};

    #[test]
    fn a_text_comes_back_as_it_was_typed() {
        for text in ["", "a", "\0", "a\0b", "\u{F8FF}", "\u{F8FF}0", "\u{F8FF}1", "\0\u{F8FF}0\u{F8FF}\0"] {
            let stored = escape(text).into_owned();
            assert!(!stored.contains('\0'));
            assert_eq!(unescape(stored), text);
        }
    }

    #[test]
    fn numerics_are_read() {
        let bytes = |halves: &[i16]| halves.iter().flat_map(|half| half.to_be_bytes()).collect::<Vec<u8>>();
        let whole = |halves: &[i16]| match numeric(&bytes(halves)) {
            Some(Number::Integer(value)) => value,
            _ => panic!("{halves:?}"),
        };
        assert_eq!(whole(&[0, 0, 0, 0]), 0);
        assert_eq!(whole(&[1, 0, 0, 0, 7]), 7);
        // Digits that are zero at the end are left out.
        assert_eq!(whole(&[1, 1, 0, 0, 12]), 120_000);
        assert_eq!(whole(&[2, 1, 0x4000, 0, 12, 3456]), -123_456);
        match numeric(&bytes(&[2, 0, 0, 1, 2, 5000])) {
            Some(Number::Real(value)) => assert_eq!(value, 2.5),
            _ => panic!("2.5 is a real"),
        }
        assert!(numeric(&bytes(&[0, 0, -0x4000, 0])).is_none(), "it is not a number");
    }
}
