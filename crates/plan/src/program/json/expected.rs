//! A JSON value that an answer must have: numbers are equal by their value, members in any order.

use serde_json::Value;

/// A JSON value to compare with.
#[derive(Clone, Debug)]
pub(in crate::program) struct Expected {
    value: Value,
    /// As serde_json writes it: the same bytes need no parsing.
    bytes: Vec<u8>,
}

impl Expected {
    pub fn new(value: &Value) -> Self {
        Expected {
            value: value.clone(),
            bytes: value.to_string().into_bytes(),
        }
    }

    /// True if `raw` is the same JSON value: numbers by their value, members in any order.
    pub fn is(&self, raw: &[u8]) -> bool {
        raw == self.bytes
            || serde_json::from_slice(raw).is_ok_and(|found: Value| same(&found, &self.value))
    }
}

fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => same_number(a, b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, value)| b.get(key).is_some_and(|other| same(value, other)))
        }
        _ => a == b,
    }
}

fn same_number(a: &serde_json::Number, b: &serde_json::Number) -> bool {
    let whole = |n: &serde_json::Number| {
        n.as_i64()
            .map(i128::from)
            .or_else(|| n.as_u64().map(i128::from))
    };
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => a == b,
        (None, None) => a.as_f64() == b.as_f64(),
        (Some(whole), None) => is_float(whole, b),
        (None, Some(whole)) => is_float(whole, a),
    }
}

/// True if a float is exactly this whole number: 2^53 + 1 is not 2^53.
fn is_float(whole: i128, float: &serde_json::Number) -> bool {
    float
        .as_f64()
        .is_some_and(|float| float == whole as f64 && float as i128 == whole)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_equal_as_json_not_as_text() {
        for (expected, raw, equal) in [
            (json!(1), "1.0", true),
            (json!(1.0), "1", true),
            (json!(1), "1e0", true),
            (json!(100), "1E2", true),
            (json!(1), "2", false),
            (json!(1), "\"1\"", false),
            (json!(-0.0), "0", true),
            (
                json!(9_007_199_254_740_993_u64),
                "9007199254740992.0",
                false,
            ), // 2^53 + 1 is no float
            (json!(9_007_199_254_740_992_u64), "9007199254740992.0", true),
            (
                json!(18_446_744_073_709_551_615_u64),
                "18446744073709551615",
                true,
            ),
            (json!("grün"), "\"gr\\u00fcn\"", true),
            (json!("a/b"), "\"a\\/b\"", true),
            (json!("OK"), "\"ok\"", false),
            (json!(null), "null", true),
            (json!(null), "false", false),
            (
                json!([1, {"a": 2.0, "b": []}]),
                "[1.0,{\"b\":[ ],\"a\":2}]",
                true,
            ),
            (json!([1, 2]), "[2,1]", false),
            (json!({"a": 1}), "{\"a\":1,\"b\":2}", false),
        ] {
            assert_eq!(
                Expected::new(&expected).is(raw.as_bytes()),
                equal,
                "{expected} {raw}"
            );
        }
    }
}
