//! A slow, literal reading of RFC 9112 for requests, with none of the engine's code in it.
//!
//! It takes the bytes of one whole request and nothing else, as a client that never pipelines sends them.

/// Content of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    pub target: String,
    /// Names in lower case, values without white space around them.
    pub fields: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
}

/// The one request that these bytes are; an error names the rule that they break.
pub fn request(bytes: &[u8]) -> Result<Request, &'static str> {
    let end = bytes
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .ok_or("2.1: no empty line")?;
    let head = &bytes[..end];
    let body = &bytes[end + 4..];
    let mut lines = split_lines(head)?.into_iter();
    let (method, target) = request_line(lines.next().ok_or("3: no request line")?)?;
    let fields = lines.map(field).collect::<Result<Vec<_>, _>>()?;
    let values = |name: &str| -> Vec<&[u8]> {
        let of_name = fields.iter().filter(|(field, _)| field == name);
        of_name.map(|(_, value)| value.as_slice()).collect()
    };
    match values("host")[..] {
        [host] if !host.is_empty() => {}
        _ => return Err("3.2: exactly one Host"),
    }
    if !values("transfer-encoding").is_empty() {
        return Err("6.1: a length is known, so no Transfer-Encoding");
    }
    let announced = match values("content-length")[..] {
        [] => None,
        [digits] if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) => {
            let text = std::str::from_utf8(digits).map_err(|_| "6.2: 1*DIGIT")?;
            Some(text.parse::<usize>().map_err(|_| "6.2: overflow")?)
        }
        _ => return Err("6.2: one Content-Length of digits"),
    };
    if announced.is_none() && matches!(method.as_str(), "POST" | "PUT" | "PATCH") {
        return Err("9110 8.6: a method that expects a body says its length");
    }
    if announced.unwrap_or(0) != body.len() {
        return Err("6.3: as many bytes as announced, and no second request");
    }
    Ok(Request {
        method,
        target,
        fields,
        body: body.to_vec(),
    })
}

/// 2.2: CR and LF stand together, at the end of a line.
fn split_lines(head: &[u8]) -> Result<Vec<&[u8]>, &'static str> {
    let mut lines = Vec::new();
    let mut from = 0;
    let mut at = 0;
    while at < head.len() {
        match (head[at], head.get(at + 1)) {
            (b'\r', Some(b'\n')) => {
                lines.push(&head[from..at]);
                at += 2;
                from = at;
            }
            (b'\r' | b'\n', _) => return Err("2.2: CR or LF alone"),
            _ => at += 1,
        }
    }
    lines.push(&head[from..]);
    Ok(lines)
}

/// 3: method SP request-target SP HTTP-version, the target in origin-form (3.2.1).
fn request_line(line: &[u8]) -> Result<(String, String), &'static str> {
    let line = std::str::from_utf8(line).map_err(|_| "3: not ASCII")?;
    let [method, target, version] = line.split(' ').collect::<Vec<_>>()[..] else {
        return Err("3: three parts and two spaces");
    };
    if !is_token(method) {
        return Err("3.1: the method is a token");
    }
    if version != "HTTP/1.1" {
        return Err("2.3: HTTP/1.1");
    }
    if !target.starts_with('/') {
        return Err("3.2.1: a target begins with a slash");
    }
    // RFC 3986 3.3 and 3.4: pchar, slash and question mark.
    let mut rest = target.bytes();
    while let Some(byte) = rest.next() {
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?".contains(&byte);
        let mut is_digit = || rest.next().is_some_and(|digit| digit.is_ascii_hexdigit());
        let is_good = is_plain || byte == b'%' && is_digit() && is_digit();
        if !is_good {
            return Err("3986: a byte that no target has");
        }
    }
    Ok((method.to_owned(), target.to_owned()))
}

/// 5: field-name ":" OWS field-value OWS.
fn field(line: &[u8]) -> Result<(String, Vec<u8>), &'static str> {
    let colon = line.iter().position(|byte| *byte == b':');
    let (name, value) = line.split_at(colon.ok_or("5: no colon")?);
    let name = std::str::from_utf8(name).map_err(|_| "5.1: the name is a token")?;
    if !is_token(name) {
        return Err("5.1: the name is a token");
    }
    let is_text = |byte: &u8| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f);
    if !value.iter().all(is_text) {
        return Err("9110 5.5: a control byte in a value");
    }
    let is_space = |byte: &u8| *byte == b' ' || *byte == b'\t';
    let mut value = &value[1..];
    while value.first().is_some_and(is_space) {
        value = &value[1..];
    }
    while value.last().is_some_and(is_space) {
        value = &value[..value.len() - 1];
    }
    Ok((name.to_ascii_lowercase(), value.to_vec()))
}

/// 9110 5.6.2.
fn is_token(text: &str) -> bool {
    let is_tchar = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !text.is_empty() && text.chars().all(is_tchar)
}
