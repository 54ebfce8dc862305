//! A slow, literal reading of RFC 9112 for responses, with none of the engine's code in it.
//!
//! It takes whole messages only and is written to be compared with the text of the RFC, rule by rule. Where the RFC
//! leaves a choice it makes the one that `response` documents.

/// End of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    None,
    Bytes(u64),
    Chunked,
    UntilClose,
}

/// Content of a whole head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub status: u16,
    pub length: Length,
    pub keep_alive: bool,
    pub len: usize,
}

/// The head at the beginning of `bytes`: an error when it is invalid, none when its blank line is not there.
pub fn head(bytes: &[u8], request_was_head: bool) -> Result<Option<Head>, &'static str> {
    let Some((lines, len)) = lines(bytes) else {
        return Ok(None);
    };
    let (minor, status) = status_line(lines[0])?;
    let fields = fields(&lines[1..])?;
    if status == 101 {
        return Err("9110 15.2.2: the request did not ask to switch protocols");
    }
    let length = body_length(minor, status, &fields, request_was_head)?;
    let both = has(&fields, "transfer-encoding") && has(&fields, "content-length");
    let keep_alive =
        status < 200 || (persists(minor, &fields) && !both && length != Length::UntilClose);
    Ok(Some(Head {
        status,
        length,
        keep_alive,
        len,
    }))
}

/// 2.1: the lines up to the blank one, without their ends, and the bytes of all of them.
fn lines(bytes: &[u8]) -> Option<(Vec<&[u8]>, usize)> {
    let mut lines = Vec::new();
    let mut at = 0;
    loop {
        let end = at + bytes[at..].iter().position(|byte| *byte == b'\n')?;
        let line = &bytes[at..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line); // 2.2: a lone LF may end a line
        at = end + 1;
        if line.is_empty() && !lines.is_empty() {
            return Some((lines, at));
        }
        lines.push(line);
    }
}

/// 4: HTTP-version SP status-code SP [ reason-phrase ]; the second space may be missing.
fn status_line(line: &[u8]) -> Result<(u8, u16), &'static str> {
    let version = line.get(..9).ok_or("4: too short")?;
    if !(version.starts_with(b"HTTP/1.") && version[7].is_ascii_digit() && version[8] == b' ') {
        return Err("2.3: not HTTP/1");
    }
    let code = line.get(9..12).ok_or("4: no status")?;
    if !code.iter().all(u8::is_ascii_digit) {
        return Err("4: status not 3DIGIT");
    }
    let status: u16 = std::str::from_utf8(code).unwrap().parse().unwrap();
    if !(100..=599).contains(&status) {
        return Err("9110 15: no such class of status");
    }
    match line.get(12) {
        None | Some(b' ') => {}
        Some(_) => return Err("4: no space after the status"),
    }
    if !line[12..].iter().all(|byte| is_text(*byte)) {
        return Err("4: reason-phrase is HTAB, SP, VCHAR, obs-text");
    }
    Ok((version[7] - b'0', status))
}

fn is_text(byte: u8) -> bool {
    byte == b'\t' || (0x20..0x7f).contains(&byte) || byte >= 0x80
}

/// 5: names in lower case and values without white space around them, folded lines joined by a space (5.2).
fn fields(lines: &[&[u8]]) -> Result<Vec<(String, Vec<u8>)>, &'static str> {
    let mut fields: Vec<(String, Vec<u8>)> = Vec::new();
    for line in lines {
        if !line.iter().all(|byte| is_text(*byte)) {
            return Err("9110 5.5: control byte; 2.2: bare CR");
        }
        if line[0] == b' ' || line[0] == b'\t' {
            let (_, value) = fields
                .last_mut()
                .ok_or("2.2: white space before the first field")?;
            value.push(b' ');
            value.extend_from_slice(trimmed(line));
            continue;
        }
        let colon = line
            .iter()
            .position(|byte| *byte == b':')
            .ok_or("5: no colon")?;
        let name = std::str::from_utf8(&line[..colon]).map_err(|_| "5.1: name not a token")?;
        let symbols = "!#$%&'*+-.^_`|~";
        if name.is_empty()
            || !name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || symbols.contains(c))
        {
            return Err("5.1: name not a token");
        }
        fields.push((name.to_lowercase(), trimmed(&line[colon + 1..]).to_vec()));
    }
    for (_, value) in &mut fields {
        *value = trimmed(value).to_vec();
    }
    Ok(fields)
}

fn trimmed(text: &[u8]) -> &[u8] {
    let is_space = |byte: &u8| *byte == b' ' || *byte == b'\t';
    let start = text
        .iter()
        .position(|byte| !is_space(byte))
        .unwrap_or(text.len());
    let end = text
        .iter()
        .rposition(|byte| !is_space(byte))
        .map_or(start, |last| last + 1);
    &text[start..end]
}

fn has(fields: &[(String, Vec<u8>)], name: &str) -> bool {
    fields.iter().any(|(field, _)| field == name)
}

/// All elements of all fields of this name (9110 5.3 and 5.6.1), empty ones left out.
fn list(fields: &[(String, Vec<u8>)], name: &str) -> Vec<String> {
    let values = fields.iter().filter(|(field, _)| field == name);
    let text = |value: &[u8]| value.iter().map(|byte| *byte as char).collect::<String>();
    values
        .flat_map(|(_, value)| {
            text(value)
                .split(',')
                .map(|e| e.trim_matches([' ', '\t']).to_owned())
                .collect::<Vec<_>>()
        })
        .filter(|element| !element.is_empty())
        .collect()
}

/// 6.3, rule by rule.
fn body_length(
    minor: u8,
    status: u16,
    fields: &[(String, Vec<u8>)],
    request_was_head: bool,
) -> Result<Length, &'static str> {
    // 1
    if request_was_head || status < 200 || status == 204 || status == 304 {
        return Ok(Length::None);
    }
    // 2 concerns CONNECT, which is never sent. 3: Transfer-Encoding overrides Content-Length.
    if has(fields, "transfer-encoding") {
        let codings = list(fields, "transfer-encoding");
        for coding in &codings {
            let name = coding
                .split(';')
                .next()
                .unwrap()
                .trim_end_matches([' ', '\t']);
            let symbols = "!#$%&'*+-.^_`|~";
            if name.is_empty()
                || !name
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || symbols.contains(c))
            {
                return Err("7: coding not a token");
            }
            if name.eq_ignore_ascii_case("chunked") && coding.contains(';') {
                return Err("7.1: chunked has no parameters");
            }
        }
        if codings
            .iter()
            .filter(|coding| coding.eq_ignore_ascii_case("chunked"))
            .count()
            > 1
        {
            return Err("6.1: chunked applied more than once");
        }
        if minor == 0 {
            return Err("6.1: framing of an HTTP/1.0 message with Transfer-Encoding is faulty");
        }
        // 4
        return Ok(match codings.last() {
            Some(last) if last.eq_ignore_ascii_case("chunked") => Length::Chunked,
            _ => Length::UntilClose,
        });
    }
    // 5 and 6
    if has(fields, "content-length") {
        let each_has_one = fields
            .iter()
            .filter(|(name, _)| name == "content-length")
            .all(|field| !list(std::slice::from_ref(field), "content-length").is_empty());
        let values = list(fields, "content-length");
        if !each_has_one
            || !values
                .iter()
                .all(|value| value.bytes().all(|byte| byte.is_ascii_digit()))
        {
            return Err("5: Content-Length is 1*DIGIT");
        }
        let numbers: Result<Vec<u64>, _> =
            values.iter().map(|value| value.parse::<u64>()).collect();
        let numbers = numbers.map_err(|_| "5: overflow")?;
        if numbers.iter().any(|number| *number != numbers[0]) {
            return Err("5: differing values");
        }
        return Ok(Length::Bytes(numbers[0]));
    }
    // 7 concerns requests. 8
    Ok(Length::UntilClose)
}

/// 9.3
fn persists(minor: u8, fields: &[(String, Vec<u8>)]) -> bool {
    let options: Vec<String> = list(fields, "connection")
        .iter()
        .map(|option| option.to_lowercase())
        .collect();
    if options.contains(&"close".to_owned()) {
        return false;
    }
    minor >= 1 || options.contains(&"keep-alive".to_owned())
}

/// 7.1: the content of a chunked body and the bytes it takes; none when it is not whole.
pub fn chunked(bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, &'static str> {
    let mut content = Vec::new();
    let mut at = 0;
    loop {
        let Some(line) = crlf_line(&bytes[at..])? else {
            return Ok(None);
        };
        at += line.len() + 2;
        let digits = line
            .iter()
            .take_while(|byte| byte.is_ascii_hexdigit())
            .count();
        let size = std::str::from_utf8(&line[..digits]).unwrap();
        let size = usize::from_str_radix(size, 16)
            .map_err(|_| "7.1: chunk-size is 1*HEXDIG below 2^64")?;
        let extension = trimmed(&line[digits..]);
        if digits < line.len() && !extension.starts_with(b";") {
            return Err("7.1.1: chunk-ext begins with BWS and a semicolon");
        }
        if size == 0 {
            break;
        }
        let Some(data) = bytes[at..].get(..size) else {
            return Ok(None);
        };
        content.extend_from_slice(data);
        at += size;
        match bytes.get(at..at + 2) {
            Some(b"\r\n") => at += 2,
            Some(_) => return Err("7.1: chunk-data is followed by CRLF"),
            None => return Ok(None),
        }
    }
    let mut trailers = Vec::new();
    loop {
        let Some(line) = crlf_line(&bytes[at..])? else {
            return Ok(None);
        };
        at += line.len() + 2;
        if line.is_empty() {
            fields(&trailers)?;
            return Ok(Some((content, at)));
        }
        trailers.push(line);
    }
}

fn crlf_line(bytes: &[u8]) -> Result<Option<&[u8]>, &'static str> {
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
        return Ok(None);
    };
    let line = bytes[..end]
        .strip_suffix(b"\r")
        .ok_or("7.1: line ends are CRLF")?;
    if line.iter().all(|byte| is_text(*byte)) {
        Ok(Some(line))
    } else {
        Err("control byte")
    }
}

/// The header lines of a good head, names in lower case; none where a line is folded.
#[allow(dead_code)] // not every test asks for it
pub fn fields_of(head: &[u8]) -> Option<Vec<(String, Vec<u8>)>> {
    let (lines, _) = lines(head)?;
    let is_folded = |line: &&[u8]| line.starts_with(b" ") || line.starts_with(b"\t");
    if lines.iter().any(is_folded) {
        return None;
    }
    fields(&lines[1..]).ok()
}
