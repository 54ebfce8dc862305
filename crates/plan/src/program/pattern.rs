//! A regular expression over bytes, in linear time and without an allocation for each answer.
//!
//! The automata are shared by all threads; what a search writes into is a [`Tool`] of the thread's own.

use regex_automata::meta::{BuildError, Cache, Config, Regex};
use regex_automata::util::captures::Captures;
use regex_automata::util::syntax;
use regex_automata::Input;

/// The longest pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 4096;
/// Memory bound of its automata: `\w{1000}` is far above it.
const MAX_AUTOMATON_BYTES: usize = 1 << 20;
/// Cache bound per thread while searching.
const MAX_CACHE_BYTES: usize = 1 << 20;

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    regex: Regex,
    group: usize,
    /// Index of its tool among those of the thread.
    pub tool: usize,
}

/// Search state of one thread.
#[derive(Debug)]
pub(super) struct Tool {
    cache: Cache,
    captures: Captures,
}

impl Pattern {
    /// Compiles a pattern of which `group` is wanted; none: the first group, or the whole match when it has none.
    pub fn new(text: &str, group: Option<u32>) -> Result<Pattern, String> {
        if text.is_empty() {
            return Err("an empty regular expression is in every body".to_owned());
        }
        if text.len() > MAX_PATTERN_BYTES {
            let length = text.len();
            return Err(format!(
                "a regular expression of {length} bytes: at most {MAX_PATTERN_BYTES}"
            ));
        }
        let config = Config::new()
            .utf8_empty(false)
            .nfa_size_limit(Some(MAX_AUTOMATON_BYTES))
            .onepass_size_limit(Some(MAX_AUTOMATON_BYTES))
            .hybrid_cache_capacity(MAX_CACHE_BYTES);
        let regex = Regex::builder()
            .configure(config)
            .syntax(syntax::Config::new().utf8(false))
            .build(text)
            .map_err(|error| fault(text, &error))?;
        let groups = regex.group_info().group_len(Default::default()) - 1;
        let group = group.map_or(groups.min(1), |group| group as usize);
        if group > groups {
            return Err(format!(
                "regular expression `{text}` has {groups} groups, no group {group}: put what is wanted in brackets"
            ));
        }
        Ok(Pattern {
            regex,
            group,
            tool: 0,
        })
    }

    /// Creates the search state of one thread.
    pub fn tool(&self) -> Tool {
        Tool {
            cache: self.regex.create_cache(),
            captures: self.regex.create_captures(),
        }
    }

    /// True if something in `bytes` matches.
    pub fn is_in(&self, bytes: &[u8], tools: &mut [Tool]) -> bool {
        let input = Input::new(bytes).earliest(true);
        let cache = &mut tools[self.tool].cache;
        self.regex.search_half_with(cache, &input).is_some()
    }

    /// The wanted group of the first match.
    pub fn find<'a>(&self, bytes: &'a [u8], tools: &mut [Tool]) -> Option<&'a [u8]> {
        let Tool { cache, captures } = &mut tools[self.tool];
        let input = Input::new(bytes);
        let span = if self.group == 0 {
            self.regex.search_with(cache, &input)?.span()
        } else {
            self.regex.search_captures_with(cache, &input, captures);
            captures.get_group(self.group)?
        };
        Some(&bytes[span.range()])
    }
}

/// The crate's own words for what is wrong, without its drawing over several lines.
fn fault(text: &str, error: &BuildError) -> String {
    let what = match error.syntax_error() {
        Some(error) => error.to_string(),
        None if error.size_limit().is_some() => {
            format!("its automaton is over {} KiB", MAX_AUTOMATON_BYTES >> 10)
        }
        None => error.to_string(),
    };
    let last = what.lines().last().unwrap_or_default();
    let last = last.strip_prefix("error: ").unwrap_or(last);
    format!("`{text}` is not a regular expression: {last}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, group: Option<u32>, text: &[u8]) -> Option<Vec<u8>> {
        let pattern = Pattern::new(pattern, group).unwrap();
        let mut tools = [pattern.tool()];
        assert_eq!(
            pattern.is_in(text, &mut tools),
            pattern.regex.is_match(text)
        );
        pattern.find(text, &mut tools).map(<[u8]>::to_vec)
    }

    #[test]
    fn the_wanted_group_of_the_first_match_is_found() {
        let page = b"<input name=\"csrf\" value=\"a1\"><input name=\"csrf\" value=\"b2\">";
        let pattern = r#"name="(\w+)" value="([^"]*)""#;

        for (group, value) in [
            (None, "csrf"),
            (Some(1), "csrf"),
            (Some(2), "a1"),
            (Some(0), "name=\"csrf\" value=\"a1\""),
        ] {
            assert_eq!(found(pattern, group, page), Some(value.into()), "{group:?}");
        }
        assert_eq!(found(r"\d+", None, b"id=417;"), Some(b"417".to_vec()));
        assert_eq!(found("(a)|b", None, b"b"), None); // the group took no part in the match
        assert_eq!(found("x", None, b""), None);
    }

    #[test]
    fn bytes_that_are_no_utf_8_can_be_searched_and_matched() {
        assert_eq!(
            found(r"id=(\d+)", None, b"\xff\xfeid=7\xff"),
            Some(b"7".to_vec())
        );
        assert_eq!(
            found(r"(?-u:\xff+)", None, b"a\xff\xffb"),
            Some(b"\xff\xff".to_vec())
        );
    }

    #[test]
    fn a_pattern_that_takes_others_exponential_time_ends_at_once() {
        let text = vec![b'a'; 100_000];

        assert_eq!(found("(a*)*b|(a+)+c", Some(0), &text), None);
    }

    #[test]
    fn a_bad_pattern_is_refused_in_the_words_of_the_crate() {
        for (pattern, group, part) in [
            ("(ab", None, "unclosed group"),
            ("a{2,1}", None, "invalid repetition count range"),
            (r"(a)\1", None, "backreferences are not supported"),
            (r"(?=a)", None, "look-around"),
            ("[z-a]", None, "invalid character class range"),
            ("", None, "empty"),
            (r"\w{1000}{10}", None, "over 1024 KiB"),
            ("(a)(b)", Some(3), "has 2 groups, no group 3"),
        ] {
            let fault = Pattern::new(pattern, group).unwrap_err();
            assert!(fault.contains(part), "{pattern}: {fault}");
            assert!(!fault.contains('\n'), "{fault}");
        }
        assert!(Pattern::new(&"a".repeat(5_000), None).is_err());
    }
}
