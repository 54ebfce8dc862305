//! Paths, brackets and counts by hand, and any document against a tree of it.

use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn found<'a>(path: &str, body: &'a str) -> Option<&'a str> {
    Path::parse(path)
        .unwrap()
        .find(body.as_bytes())
        .map(|raw| std::str::from_utf8(raw).unwrap())
}

#[test]
fn a_path_leads_to_the_bytes_of_its_value() {
    let body = r#" { "a" : {"b": [10, {"c": "x"}, [true, null] ] } , "n": -1.5e3, "": 0 } "#;

    for (path, value) in [
        ("a.b[1].c", r#""x""#),
        ("$.a.b[0]", "10"),
        ("a.b[2][1]", "null"),
        ("a.b[2]", "[true, null]"),
        ("n", "-1.5e3"),
        (r#"[""]"#, "0"),
        (r#"["a"].b[0]"#, "10"),
        ("['a'].b[0]", "10"),
        ("a.b[-1]", "[true, null]"),
        ("a.b[-1][-2]", "true"),
        ("a.b[-3]", "10"),
        (
            "$",
            r#"{ "a" : {"b": [10, {"c": "x"}, [true, null] ] } , "n": -1.5e3, "": 0 }"#,
        ),
    ] {
        assert_eq!(found(path, body), Some(value), "{path}");
    }
    for path in [
        "a.b[-4]",
        "a[-1]",
        "n[-1]",
        "b",
        "a.c",
        "a.b[3]",
        "a.b.c",
        "a[0]",
        "n.x",
        "a.b[1].c.d",
    ] {
        assert_eq!(found(path, body), None, "{path}");
    }
}

#[test]
fn brackets_and_quotes_within_strings_are_passed_over() {
    let body =
        r#"{"skip":"}]\"{[\\","also":["\u007d",{"k\"":"]"}],"k\u0065y":"gr\u00fcn \ud83d\ude00"}"#;

    assert_eq!(found("key", body), Some(r#""gr\u00fcn \ud83d\ude00""#));
    assert_eq!(
        unescaped(found("key", body).unwrap().as_bytes()).unwrap(),
        "grün \u{1f600}".as_bytes()
    );
}

#[test]
fn what_is_not_json_has_no_value() {
    for body in [
        "",
        "{",
        r#"{"a""#,
        r#"{"a":"#,
        r#"{"a":}"#,
        r#"{"a" 1}"#,
        r"{a:1}",
        r#"{"a":01}"#,
        r#"{"a":tru}"#,
        r#"{"a":"x}"#,
        r#"{"a":"\x"}"#,
        r#"{"a":[1}"#,
        r#"{"a":[1,]}"#,
        r#"{"a":+1}"#,
        r#"{"a":1.}"#,
        r#"{"x":[1},"a":2}"#,
        r#"{"x":{"y":1],"a":2}"#,
        r#"{"a":NaN}"#,
        "{\"a\":\"line\nend\"}",
        r#"["a"]"#,
        "<html>",
    ] {
        assert_eq!(found("a", body), None, "{body}");
    }
    assert_eq!(found("a", r#"{"a":1"#), Some("1")); // nothing after the value is read
    assert_eq!(Path::parse("a").unwrap().find(b"{\"a\":\"\xff\"}"), None);
}

#[test]
fn elements_and_members_are_counted() {
    let body = br#"{"a":[1,[2,3],{"b":4}],"none":[ ],"o":{"x":[1,2],"y":"}"},"empty":{ },"n":7,"bad":[1,]}"#;

    for (path, count) in [
        ("a", Some(3)),
        ("a[1]", Some(2)),
        ("none", Some(0)),
        ("o", Some(2)),
        ("empty", Some(0)),
        ("n", None),
        ("missing", None),
        ("bad", None),
    ] {
        assert_eq!(Path::parse(path).unwrap().count(body), count, "{path}");
    }
}

#[test]
fn a_document_is_one_value_to_its_end() {
    for (body, is) in [
        (" {\"a\":[1,{}]} \n", true),
        ("\u{feff}7", true),
        ("", false),
        ("<html>", false),
        ("{}{}", false),
        ("{\"a\":1", false),
        ("[1] x", false),
    ] {
        assert_eq!(is_document(body.as_bytes()), is, "{body}");
    }
}

#[test]
fn only_json_numbers_are_numbers() {
    for (raw, value) in [
        ("7", Some(7.0)),
        ("-1.5e3", Some(-1500.0)),
        ("\"7\"", None),
        ("true", None),
        ("null", None),
    ] {
        assert_eq!(number(raw.as_bytes()), value, "{raw}");
    }
}

#[test]
fn nesting_is_followed_to_128_levels() {
    let nested = |depth: usize| {
        format!(
            r#"{{"deep":{}1{},"a":2}}"#,
            "[".repeat(depth),
            "]".repeat(depth)
        )
    };

    assert_eq!(found("a", &nested(128)), Some("2"));
    assert_eq!(found("a", &nested(129)), None);
    assert_eq!(found("deep", &nested(100_000)), None);
}

#[test]
fn paths_that_cannot_be_read_are_refused_with_their_fault() {
    for (path, part) in [
        ("", "is not a JSON path"),
        ("a..b", "empty name"),
        (".a", "empty name"),
        ("a.", "empty name"),
        ("a[", "not closed"),
        ("a[x]", "is not an index"),
        ("a[-0]", "is not an index"),
        ("a[--1]", "is not an index"),
        ("a[+1]", "is not an index"),
        ("a[*]", "is not an index"),
        ("a['b", "not closed"),
        ("a[]", "is not an index"),
        ("a[\"b", "not closed"),
        ("a[0]b", "a dot is missing"),
        ("$a", "a dot is missing"),
        (" a", "is not a JSON path"),
    ] {
        let fault = Path::parse(path).unwrap_err();
        assert!(fault.contains(part), "{path}: {fault}");
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(Value::from),
        "[ -~\u{e9}\u{1f600}\n\"\\\\{}\\[\\]]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::hash_map("[ab\"\u{e9}. ]{0,3}", inner, 0..5)
                .prop_map(Value::from_iter),
        ]
    })
}

/// All members and elements of a value, with the way to them.
fn walk(value: &Value, way: &mut Vec<Member>, visit: &mut impl FnMut(&[Member], &Value)) {
    visit(way, value);
    let steps: Vec<(Member, &Value)> = match value {
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(i, item)| (Member::Index(i), item))
            .collect(),
        Value::Object(members) => members
            .iter()
            .map(|(k, item)| (Member::Key(k.clone()), item))
            .collect(),
        _ => Vec::new(),
    };
    for (step, inner) in steps {
        way.push(step);
        walk(inner, way, visit);
        way.pop();
    }
}

proptest! {
    #[test]
    fn every_value_of_a_document_is_found_as_a_tree_of_it_would_give(document in any_json(), pretty: bool) {
        let text = if pretty { serde_json::to_string_pretty(&document) } else { serde_json::to_string(&document) };
        let text = text.unwrap();
        walk(&document, &mut Vec::new(), &mut |way, value| {
            let raw = Path(way.to_vec()).find(text.as_bytes()).expect("found");
            assert_eq!(&serde_json::from_slice::<Value>(raw).unwrap(), value);
            assert!(Expected::new(value).is(raw));
        });
    }

    #[test]
    fn no_bytes_make_the_scanner_panic(bytes in "[{}\\[\\]\",:a0\\\\ \n]{0,40}", cut in any::<proptest::sample::Index>()) {
        let bytes = &bytes.as_bytes()[..cut.index(bytes.len() + 1)];
        for path in ["a", "[0]", "a[1].a", "$"] {
            if let Some(raw) = Path::parse(path).unwrap().find(bytes) {
                prop_assert!(serde_json::from_slice::<Value>(raw).is_ok());
            }
        }
    }

    #[test]
    fn escaped_text_is_read_back(text in any::<String>()) {
        let mut quoted = vec![b'"'];
        push_escaped(&mut quoted, text.as_bytes());
        quoted.push(b'"');
        prop_assert_eq!(unescaped(&quoted), Some(text.into_bytes()));
    }
}
