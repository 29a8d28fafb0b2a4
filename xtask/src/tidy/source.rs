//! Just enough of Rust's lexer to tell code from comments, strings and tests.

/// The text with comments and the contents of string and character literals turned into spaces.
/// Every character keeps its line and column.
pub(super) fn code_only(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let after_word = out.chars().next_back().is_some_and(is_word);
        let hidden = hidden_length(rest, after_word);
        if hidden > 0 {
            blank(&rest[..hidden], &mut out);
            rest = &rest[hidden..];
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}

/// `code` (see [`code_only`]) with the bodies of `#[cfg(test)] mod … { … }` turned into spaces.
pub(super) fn without_test_modules(code: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut out = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(start) = rest.find(MARK) {
        let (before, marked) = rest.split_at(start);
        out.push_str(before);
        let length = item_length(marked);
        blank(&marked[..length], &mut out);
        rest = &marked[length..];
    }
    out.push_str(rest);
    out
}

/// Functions and their lengths in lines, from the line of `fn` to that of the closing brace.
pub(super) fn functions(code: &str) -> Vec<Function> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        if code[..at].chars().next_back().is_some_and(is_word) {
            continue;
        }
        let name: String =
            code[at + 3..].trim_start().chars().take_while(|&c| is_word(c)).collect();
        if name.is_empty() {
            continue;
        }
        let line = code[..at].matches('\n').count() + 1;
        let lines = code[at..at + item_length(&code[at..])].matches('\n').count() + 1;
        found.push(Function { name, line, lines });
    }
    found
}

/// One function in a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    /// Counted from 1.
    pub(super) line: usize,
    pub(super) lines: usize,
}

/// Bytes up to the end of the item that starts here: its closing brace, or its semicolon.
fn item_length(code: &str) -> usize {
    let (mut braces, mut brackets) = (0_usize, 0_usize);
    for (at, character) in code.char_indices() {
        match character {
            '{' => braces += 1,
            '}' => {
                braces = braces.saturating_sub(1);
                if braces == 0 {
                    return at + 1;
                }
            }
            '[' | '(' => brackets += 1,
            ']' | ')' => brackets = brackets.saturating_sub(1),
            ';' if braces == 0 && brackets == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

/// Bytes of the comment or literal that starts here; 0 when code starts here.
fn hidden_length(rest: &str, after_word: bool) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return block_comment_length(rest);
    }
    if rest.starts_with('"') {
        return string_length(rest, 1);
    }
    if rest.starts_with('\'') {
        return character_length(rest);
    }
    if after_word {
        return 0;
    }
    let prefix = ["br", "cr", "r"].into_iter().find(|prefix| rest.starts_with(prefix));
    prefix.map_or(0, |prefix| raw_string_length(rest, prefix.len()))
}

fn block_comment_length(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        let here = &rest.as_bytes()[at..];
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn string_length(rest: &str, opening: usize) -> usize {
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate().skip(opening) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// A character literal, not a lifetime: `'x'` or `'\…'`.
fn character_length(rest: &str) -> usize {
    let mut characters = rest.char_indices().skip(1);
    let Some((_, first)) = characters.next() else { return 0 };
    if first == '\\' {
        characters.next();
        return characters.find(|&(_, c)| c == '\'').map_or(0, |(at, _)| at + 1);
    }
    match characters.next() {
        Some((at, '\'')) => at + 1,
        _ => 0,
    }
}

/// `r"…"`, `r#"…"#` and so on; 0 when the letters are a name or a raw identifier.
fn raw_string_length(rest: &str, prefix: usize) -> usize {
    let hashes = rest[prefix..].bytes().take_while(|&byte| byte == b'#').count();
    let body = prefix + hashes;
    if !rest[body..].starts_with('"') {
        return 0;
    }
    let closing = format!("\"{}", "#".repeat(hashes));
    rest[body + 1..].find(&closing).map_or(rest.len(), |at| body + 1 + at + closing.len())
}

fn blank(hidden: &str, out: &mut String) {
    out.extend(hidden.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_lines_kept() {
        let text =
            "let a = \"std::env\"; // exit\n/* a /* b */ c */ let b = r#\"x\"y\"#;\nlet c = '\"';";
        let code = code_only(text);
        assert_eq!(code.lines().count(), 3);
        assert!(!code.contains("env") && !code.contains("exit") && !code.contains('y'));
        assert!(code.contains("let a =") && code.contains("let b =") && code.contains("let c ="));
        assert_eq!(code.chars().count(), text.chars().count());
    }

    #[test]
    fn a_lifetime_is_no_character_literal() {
        let code = code_only("fn f<'a>(x: &'a str) -> char { '\\'' }");
        assert!(code.contains("<'a>(x: &'a str)"), "{code}");
        assert!(!code.contains("\\'"), "{code}");
    }

    #[test]
    fn a_raw_identifier_and_a_name_ending_in_r_stay_code() {
        assert_eq!(code_only("r#type; for_r; br"), "r#type; for_r; br");
    }

    #[test]
    fn test_modules_vanish_and_what_follows_stays() {
        let code = "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() { if x {} }\n}\nfn c() {}\n";
        let shipped = without_test_modules(code);
        assert!(shipped.contains("fn a") && shipped.contains("fn c") && !shipped.contains("fn b"));
        assert_eq!(shipped.lines().count(), code.lines().count());
    }

    #[test]
    fn a_test_module_in_another_file_ends_at_its_semicolon() {
        let shipped = without_test_modules("#[cfg(test)]\nmod tests;\nfn kept() {}");
        assert!(shipped.contains("fn kept"));
    }

    #[test]
    fn functions_are_measured_brace_to_brace() {
        let code = "fn one() {\n  if a {\n  }\n}\n\nfn declared(x: [u8; 4]);\n";
        assert_eq!(
            functions(code),
            [
                Function { name: "one".into(), line: 1, lines: 4 },
                Function { name: "declared".into(), line: 6, lines: 1 },
            ]
        );
    }
}
