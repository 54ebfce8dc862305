use super::*;

#[test]
fn a_plain_head_says_status_length_and_reuse() {
    let response = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

    let expected = Head {
        status: 200,
        framing: Framing::Length(5),
        keep_alive: true,
        len: 38,
    };
    assert_eq!(parse_head(response, false), HeadResult::Complete(expected));
    assert_eq!(
        general::parse(response, false),
        HeadResult::Complete(expected)
    );
}
