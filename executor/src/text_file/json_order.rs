//! [`Order`]: the names in JSON objects, in the order in which they first come, and whether their values go together.
//!
//! `serde_json` keeps objects sorted by name; people expect the columns of a file as they wrote them.

use std::collections::BTreeMap;
use std::fmt;

use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Deserializer;

/// What a value is, as far as columns go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Object,
    Array,
    Text,
    Number,
    Boolean,
}

impl Kind {
    fn in_words(self) -> &'static str {
        match self {
            Self::Object => "an object",
            Self::Array => "an array",
            Self::Text => "a text",
            Self::Number => "a number",
            Self::Boolean => "a boolean",
        }
    }
}

/// Values of one name that do not go together.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Clash {
    /// Of the text.
    pub(crate) line: usize,
    /// Records before the one that has it.
    pub(crate) n_before: usize,
    pub(crate) what: String,
}

/// What was seen in one place of all records.
#[derive(Default)]
pub(crate) struct Order {
    /// Of the first value that is not NULL.
    kind: Option<Kind>,
    names: BTreeMap<String, usize>,
    below: Vec<Order>,
    items: Option<Box<Order>>,
}

impl Order {
    /// Notes the first `n_records` values of a text, one after another. If values of one name do not go together, which and where.
    pub(crate) fn note_records(&mut self, text: &[u8], n_records: usize) -> Result<(), Clash> {
        let mut values = Deserializer::from_slice(text);
        for n_before in 0..n_records {
            let (mut path, mut clash) = (vec![], None);
            let noted = Look { order: &mut *self, path: &mut path, clash: &mut clash }.deserialize(&mut values);
            match (noted, clash) {
                (Err(error), Some(what)) => return Err(Clash { line: error.line(), n_before, what }),
                // Whoever reads the values says what is wrong with them.
                (Err(_), None) => break,
                _ => {}
            }
        }
        Ok(())
    }

    /// The columns in this order; those that it does not know come last, as they were.
    pub(crate) fn put(&self, fields: &Fields) -> Fields {
        let mut ordered: Vec<FieldRef> = fields.iter().map(|field| self.put_below(field)).collect();
        ordered.sort_by_key(|field| self.names.get(field.name()).copied().unwrap_or(usize::MAX));
        ordered.into()
    }

    fn put_below(&self, field: &FieldRef) -> FieldRef {
        let Some(order) = self.names.get(field.name()).and_then(|position| self.below.get(*position)) else {
            return FieldRef::clone(field);
        };
        order.put_into(field)
    }

    fn put_into(&self, field: &FieldRef) -> FieldRef {
        let data_type = match (field.data_type(), &self.items) {
            (DataType::Struct(fields), _) => DataType::Struct(self.put(fields)),
            (DataType::List(item), Some(items)) => DataType::List(items.put_into(item)),
            _ => return FieldRef::clone(field),
        };
        FieldRef::new(Field::clone(field).with_data_type(data_type))
    }
}

/// A look at one value.
struct Look<'a> {
    order: &'a mut Order,
    /// The names that lead to it.
    path: &'a mut Vec<String>,
    clash: &'a mut Option<String>,
}

impl Look<'_> {
    /// Columns of scalars and of lists of them are told together, objects go with objects only.
    fn is<E: serde::de::Error>(&mut self, kind: Kind) -> Result<(), E> {
        let before = *self.order.kind.get_or_insert(kind);
        if (before == Kind::Object) == (kind == Kind::Object) {
            return Ok(());
        }
        let name = self.path.join(".");
        let (kind, before) = (kind.in_words(), before.in_words());
        *self.clash = Some(format!("\"{name}\" is {kind}, and was {before} before"));
        Err(E::custom("values do not go together"))
    }
}

impl<'de> DeserializeSeed<'de> for Look<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Look<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: serde::de::Error>(mut self, _: bool) -> Result<(), E> {
        self.is(Kind::Boolean)
    }

    fn visit_i64<E: serde::de::Error>(mut self, _: i64) -> Result<(), E> {
        self.is(Kind::Number)
    }

    fn visit_u64<E: serde::de::Error>(mut self, _: u64) -> Result<(), E> {
        self.is(Kind::Number)
    }

    fn visit_f64<E: serde::de::Error>(mut self, _: f64) -> Result<(), E> {
        self.is(Kind::Number)
    }

    fn visit_str<E: serde::de::Error>(mut self, _: &str) -> Result<(), E> {
        self.is(Kind::Text)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        self.is::<A::Error>(Kind::Array)?;
        let order = self.order.items.get_or_insert_default();
        while items
            .next_element_seed(Look { order: &mut *order, path: &mut *self.path, clash: &mut *self.clash })?
            .is_some()
        {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<(), A::Error> {
        self.is::<A::Error>(Kind::Object)?;
        let Order { names, below, .. } = self.order;
        while let Some(name) = fields.next_key::<String>()? {
            let position = match names.get(&name) {
                Some(position) => *position,
                None => {
                    names.insert(name.clone(), below.len());
                    below.push(Order::default());
                    below.len() - 1
                }
            };
            let Some(order) = below.get_mut(position) else { return Err(A::Error::custom("no place for a name")) };
            self.path.push(name);
            fields.next_value_seed(Look { order: &mut *order, path: &mut *self.path, clash: &mut *self.clash })?;
            self.path.pop();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(order: &Order) -> Vec<&str> {
        let mut names: Vec<_> = order.names.iter().collect();
        names.sort_by_key(|(_, position)| **position);
        names.into_iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn names_as_they_come() {
        let mut order = Order::default();
        order.note_records(b"{\"b\":1,\"a\":null}\n\n{\"c\":2,\"b\":[1]} {\"z\":1}", 2).unwrap();
        assert_eq!(names(&order), ["b", "a", "c"], "the third is not asked for");
        order.note_records(b"{\"y\":{\"q\":1}}{\"x\":1, \"y\":{\"p\":", 2).unwrap();
        assert_eq!(names(&order), ["b", "a", "c", "y", "x"]);
        assert_eq!(names(&order.below[3]), ["q", "p"]);
    }

    #[test]
    fn objects_go_with_objects() {
        let clash = |text: &str| {
            let Clash { line, n_before, what } = Order::default().note_records(text.as_bytes(), 10).unwrap_err();
            format!("{n_before} before line {line}: {what}")
        };
        assert_eq!(
            clash("{\"a\":{\"b\":1}}\n{\"a\":5}\n"),
            "1 before line 2: \"a\" is a number, and was an object before"
        );
        assert_eq!(
            clash("{\"a\":{\"b\":1}}\n\n{\"a\":{\"b\":[{}]}}\n{\"a\":{\"b\":{}}}"),
            "2 before line 4: \"a.b\" is an object, and was a number before"
        );
        assert_eq!(
            clash("{\"a\":[{}]}\n{\"a\":[\"x\"]}"),
            "1 before line 2: \"a\" is a text, and was an object before"
        );
        for text in ["{\"a\":1}\n{\"a\":[true]}", "{\"a\":null}\n{\"a\":{}}", "{\"a\":1}\n{\"a\":\"x\"}", "x", "{"] {
            assert_eq!(Order::default().note_records(text.as_bytes(), 10), Ok(()), "{text}");
        }
    }
}
