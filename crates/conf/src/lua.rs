//! The ends of Lua blocks, `content_by_lua_block { ... }`.
//!
//! Weir's server does not run Lua. But such a block does not follow nginx's grammar, so its end
//! must be found to continue after it: braces count unless they are in a Lua string or comment.

/// Whether the block of that directive is Lua.
pub(crate) fn is_block_of(name: &[u8]) -> bool {
    name.ends_with(b"_by_lua_block")
}

/// The offset of the `}` that ends the block whose `{` is before `text`.
pub(crate) fn end_of_block(text: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at = match byte {
            b'}' if depth == 0 => return Some(at),
            b'}' => {
                depth -= 1;
                at + 1
            }
            b'{' => {
                depth += 1;
                at + 1
            }
            b'"' | b'\'' => after_string(text, at)?,
            b'[' => after_long_bracket(text, at)?.unwrap_or(at + 1),
            b'-' if text.get(at + 1) == Some(&b'-') => after_comment(text, at + 2)?,
            _ => at + 1,
        };
    }
    None
}

/// The offset after a quoted string that begins at `at`; `None` if it does not end.
fn after_string(text: &[u8], at: usize) -> Option<usize> {
    let quote = text[at];
    let mut at = at + 1;
    loop {
        match *text.get(at)? {
            b'\\' => at += 2,
            byte if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// The offset after `[[...]]` or `[=[...]=]`; `Some(None)` if no such bracket begins at `at`.
#[expect(clippy::option_option, reason = "no such bracket, or one without an end")]
fn after_long_bracket(text: &[u8], at: usize) -> Option<Option<usize>> {
    let level = text[at + 1..].iter().take_while(|byte| **byte == b'=').count();
    if text.get(at + 1 + level) != Some(&b'[') {
        return Some(None);
    }
    let close = [&b"]"[..], &b"=".repeat(level), b"]"].concat();
    let inside = at + 2 + level;
    let len = text[inside..].windows(close.len()).position(|window| window == close)?;
    Some(Some(inside + len + close.len()))
}

/// The offset after a comment whose `--` is before `at`.
fn after_comment(text: &[u8], at: usize) -> Option<usize> {
    if text.get(at) == Some(&b'[')
        && let Some(end) = after_long_bracket(text, at)?
    {
        return Some(end);
    }
    let len = text[at..].iter().position(|byte| *byte == b'\n')?;
    Some(at + len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest(text: &str) -> Option<&str> {
        end_of_block(text.as_bytes()).map(|at| &text[at + 1..])
    }

    #[test]
    fn braces_in_strings_and_comments_do_not_count() {
        for text in [
            "}",
            " ngx.say('hi') }",
            " local t = { a = { 1 } } }",
            " say('}') say(\"}\\\"}\") }",
            " a = [[ } ]] b = [==[ ]] } ]==] }",
            " t[t[1]] = 2 }",
            " -- it isn't }\n}",
            " --[[ it isn't } ]] }",
            " --[==[ ]] } ]==] }",
            " --[ a comment }\n}",
        ] {
            assert_eq!(rest(&format!("{text} rest;")), Some(" rest;"), "{text}");
        }
    }

    #[test]
    fn an_unterminated_block_has_no_end() {
        for text in ["", "{", "{ }", "'}", "\"}\\", "[[ }", "[=[ ]] }", "-- }", "--[[ }", "a["] {
            assert_eq!(rest(text), None, "{text}");
        }
    }
}
