//! Files of records as people write them, good and bad.

use super::*;

struct Temporary(std::path::PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.0.parent().unwrap());
    }
}

fn written(name: &str, content: &[u8]) -> Temporary {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("loadlens-feed-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join(name), content).unwrap();
    Temporary(dir.join(name))
}

fn open(name: &str, format: FeedFormat, content: &[u8]) -> Result<FeedFile, String> {
    let file = written(name, content);
    FeedFile::open(file.0.to_str().unwrap(), format)
}

fn used(columns: &[&str]) -> Vec<(String, Use)> {
    columns
        .iter()
        .map(|c| ((*c).to_owned(), Use::default()))
        .collect()
}

fn texts(table: &Table, record: u32) -> Vec<String> {
    (0..table.columns as u16)
        .map(|column| {
            table
                .value(record, column)
                .with_text(|text| String::from_utf8(text.to_vec()).unwrap())
        })
        .collect()
}

#[test]
fn csv_is_read_as_rfc_4180_writes_it() {
    let content =
        "\u{feff}id,full name,note\r\n1,\"Doe, Ann\",\"say \"\"hi\"\"\nnow\"\r\n\r\n2,Bo,\r\n";
    let file = open("users.csv", FeedFormat::Csv, content.as_bytes()).unwrap();

    let table = file.table(&used(&["note", "full name"])).unwrap();

    assert_eq!(file.columns(), ["id", "full name", "note"]);
    assert_eq!(file.records(), 2);
    assert_eq!(texts(&table, 0), ["say \"hi\"\nnow", "Doe, Ann"]);
    assert_eq!(texts(&table, 1), ["", "Bo"]);
}

#[test]
fn jsonl_gives_nested_values_with_their_type() {
    let content = b"{\"id\": 7, \"a\": {\"b\": [1, true]}, \"s\": \"x\\u00e9\"}\n\n {\"s\": \"\", \"a\": {\"b\": [2.50, null]}, \"id\": -1}";
    let file = open("items.jsonl", FeedFormat::Jsonl, content).unwrap();

    let table = file.table(&used(&["id", "a.b[1]", "s", "a"])).unwrap();

    assert_eq!(file.records(), 2);
    assert_eq!(
        texts(&table, 0),
        ["7", "true", "x\u{e9}", "{\"b\": [1, true]}"]
    );
    assert_eq!(
        texts(&table, 1),
        ["-1", "null", "", "{\"b\": [2.50, null]}"]
    );
    assert!(matches!(table.value(0, 2), Value::Json(br#""x\u00e9""#)));
}

#[test]
fn a_bad_file_is_a_fault_with_its_line() {
    for (name, format, content, part) in [
        (
            "a.csv",
            FeedFormat::Csv,
            &b""[..],
            "a.csv is empty: its first line names the columns",
        ),
        (
            "a.csv",
            FeedFormat::Csv,
            b"id,name\n",
            "a.csv has no record",
        ),
        (
            "a.csv",
            FeedFormat::Csv,
            b"id,name\n1,a\n\n2\n",
            "a.csv:4: 1 field where the header has 2",
        ),
        (
            "a.csv",
            FeedFormat::Csv,
            b"id,name\n\"1\n1\",a\n2,b,c\n",
            "a.csv:4: 3 fields where the header has 2",
        ),
        (
            "a.csv",
            FeedFormat::Csv,
            b"id,id\n1,2\n",
            "a.csv:1: two columns are named `id`",
        ),
        (
            "a.csv",
            FeedFormat::Csv,
            b"id,\n1,2\n",
            "a.csv:1: column 2 is named ``",
        ),
        (
            "a.csv",
            FeedFormat::Csv,
            b"id\n1\n\xff\n",
            "a.csv:3: a feed is UTF-8 text",
        ),
        (
            "a.tsv",
            FeedFormat::Tsv,
            b"id\tname\n1,2\n",
            "a value with a tab in it",
        ),
        ("a.jsonl", FeedFormat::Jsonl, b"\n", "a.jsonl has no record"),
        (
            "a.jsonl",
            FeedFormat::Jsonl,
            b"{\"a\":1}\n[1]\n",
            "a.jsonl:2: no JSON object",
        ),
        (
            "a.jsonl",
            FeedFormat::Jsonl,
            b"{\"a\":1}\n\n{\"a\":\n",
            "a.jsonl:3: no JSON object: EOF",
        ),
    ] {
        let fault = open(name, format, content).unwrap_err();
        assert!(fault.contains(part), "{fault}");
    }
    let missing = FeedFile::open("/nowhere/a.csv", FeedFormat::Csv).unwrap_err();
    assert!(
        missing.contains("/nowhere/a.csv cannot be read"),
        "{missing}"
    );
}

#[test]
fn a_column_that_cannot_be_used_is_a_fault() {
    let header = Use {
        in_header: true,
        ..Use::default()
    };
    let raw = Use {
        is_raw: true,
        ..Use::default()
    };
    let csv = open(
        "a.csv",
        FeedFormat::Csv,
        b"id,link\n1,/a?b=%20\n\"2\n\",/a b\n",
    )
    .unwrap();
    let jsonl = open(
        "a.jsonl",
        FeedFormat::Jsonl,
        b"{\"a\":{\"b\":1}}\n{\"a\":{\"b\":\"\\n\"}}\n{\"a\":3}",
    )
    .unwrap();

    assert_eq!(csv.fault("id", Use::default()), None);
    assert_eq!(
        csv.fault("name", header).unwrap(),
        "a.csv has no column `name`; there is id, link"
    );
    assert!(csv
        .fault("id", header)
        .unwrap()
        .contains("a.csv:3: `id` has a control byte"));
    assert!(csv
        .fault("link", raw)
        .unwrap()
        .contains("a.csv:3: `link` may not stand unescaped"));
    assert_eq!(
        jsonl.fault("b", header).unwrap(),
        "a.jsonl has no column `b`; there is a"
    );
    assert!(jsonl
        .fault("a.b", header)
        .unwrap()
        .contains("a.jsonl:2: `a.b` has a control byte"));
    assert!(jsonl.fault("a.b", raw).unwrap().contains("a.jsonl:2"));
    assert_eq!(
        jsonl.fault("a.b", Use::default()).unwrap(),
        "a.jsonl:3: no `a.b` in this record"
    );
    assert!(jsonl
        .fault("a..b", Use::default())
        .unwrap()
        .contains("empty name"));
}
