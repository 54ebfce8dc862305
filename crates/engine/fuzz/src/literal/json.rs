//! A slow reading of dotted paths through a JSON value, with none of the engine's code in it.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A JSON value whose objects keep every member in its order, so that the first of two with one name can be found.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Whole(i128),
    Number(f64),
    Text(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Json;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a JSON value")
            }
            fn visit_unit<E>(self) -> Result<Json, E> {
                Ok(Json::Null)
            }
            fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
                Ok(Json::Bool(value))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
                Ok(Json::Whole(value.into()))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
                Ok(Json::Whole(value.into()))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
                Ok(Json::Number(value))
            }
            fn visit_str<E>(self, value: &str) -> Result<Json, E> {
                Ok(Json::Text(value.to_owned()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Json, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = access.next_element()? {
                    items.push(item);
                }
                Ok(Json::Array(items))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Json, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = access.next_entry()? {
                    members.push(member);
                }
                Ok(Json::Object(members))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// One step of a path: `a`, `["a key"]`, `[3]` or `[-1]`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Member {
    Key(String),
    Index(usize),
    FromEnd(usize),
}

/// Returns the value at a well-formed path; none if there is no such value.
pub fn at<'a>(value: &'a Json, path: &str) -> Option<&'a Json> {
    let mut reached = value;
    for member in members(path)? {
        reached = match (member, reached) {
            (Member::Key(key), Json::Object(all)) => &all.iter().find(|(name, _)| *name == key)?.1,
            (Member::Index(index), Json::Array(all)) => all.get(index)?,
            (Member::FromEnd(back), Json::Array(all)) => all.get(all.len().checked_sub(back)?)?,
            _ => return None,
        };
    }
    Some(reached)
}

fn members(path: &str) -> Option<Vec<Member>> {
    let mut rest = path.strip_prefix('$').unwrap_or(path).to_owned();
    let mut members = Vec::new();
    while !rest.is_empty() {
        let (member, used) = if let Some(inside) = rest.strip_prefix('[') {
            match inside.chars().next()? {
                quote @ ('"' | '\'') => {
                    let end = inside[1..].find(&format!("{quote}]"))?;
                    (Member::Key(inside[1..1 + end].to_owned()), end + 4)
                }
                _ => {
                    let end = inside.find(']')?;
                    let member = match inside[..end].strip_prefix('-') {
                        Some(back) => Member::FromEnd(back.parse().ok()?),
                        None => Member::Index(inside[..end].parse().ok()?),
                    };
                    (member, end + 2)
                }
            }
        } else {
            let dots = usize::from(rest.starts_with('.'));
            let end = rest[dots..]
                .find(['.', '['])
                .map_or(rest.len(), |end| end + dots);
            (Member::Key(rest[dots..end].to_owned()), end)
        };
        members.push(member);
        rest = rest[used..].to_owned();
    }
    Some(members)
}
