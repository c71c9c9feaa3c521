//! From SQLite's text of a statement to PostgreSQL's. The statements are the program's own, and few things differ in them:
//!
//! * parameters are `?` and `?1` there, `$1` here;
//! * `INDEXED BY index` is dropped: PostgreSQL takes no hints;
//! * `CROSS JOIN table ON …`, with which SQLite keeps the order of the tables, is a plain `JOIN`;
//! * `json_object` is called `json_build_object`;
//! * a column's name says its Rust type (`"id!: AnswerId"`); here it is the name alone.
//!
//! Functions that PostgreSQL lacks (`iif`, `max` of two, `json_each` of a text, `json_extract`, `->>` of a text) are defined
//! in `migrations/postgres/`.

/// The statement as PostgreSQL takes it.
pub(in crate::store) fn postgres_text(sqlite: &str) -> String {
    let mut text = String::with_capacity(sqlite.len());
    let mut parameters = 0;
    let mut rest = sqlite;
    while let Some(next) = rest.chars().next() {
        match next {
            '\'' => {
                let end = quoted(rest, '\'');
                text.push_str(&rest[..end]);
                rest = &rest[end..];
            }
            '"' => {
                let end = quoted(rest, '"');
                let name = &rest[1..end - 1];
                text.push('"');
                text.push_str(name.split(['!', '?', ':']).next().unwrap_or(name));
                text.push('"');
                rest = &rest[end..];
            }
            '?' => {
                let digits = rest[1..].bytes().take_while(u8::is_ascii_digit).count();
                // A parameter without number is one more than the largest before it.
                let number = rest[1..=digits].parse().unwrap_or(parameters + 1);
                parameters = parameters.max(number);
                text.push('$');
                text.push_str(&number.to_string());
                rest = &rest[1 + digits..];
            }
            letter if letter.is_ascii_alphabetic() || letter == '_' => {
                let word = &rest[..word_length(rest)];
                let after = rest[word.len()..].trim_start();
                rest = &rest[word.len()..];
                if word == "INDEXED" && after.starts_with("BY ") {
                    let name = after["BY ".len()..].trim_start();
                    rest = name[word_length(name)..].trim_start();
                } else if word == "CROSS" && after.starts_with("JOIN ") && has_condition(&after["JOIN ".len()..]) {
                    rest = after;
                } else if word == "json_object" {
                    text.push_str("json_build_object");
                } else {
                    text.push_str(word);
                }
            }
            other => {
                text.push(other);
                rest = &rest[other.len_utf8()..];
            }
        }
    }
    text
}

/// Length of the text in quotation marks with which `rest` begins, both marks included.
fn quoted(rest: &str, mark: char) -> usize {
    rest[1..].find(mark).map_or(rest.len(), |end| end + 2)
}

/// Length of the word with which `rest` begins.
fn word_length(rest: &str) -> usize {
    rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len())
}

/// Whether the table of a join, with which `rest` begins, is followed by `ON`.
fn has_condition(rest: &str) -> bool {
    let rest = rest.trim_start();
    let table = if rest.starts_with('(') { closing(rest) } else { word_length(rest) };
    let mut words = rest[table..].split_whitespace();
    match words.next() {
        Some("ON") => true,
        Some("AS" | "INDEXED") => {
            let mut words = words.skip(usize::from(rest[table..].trim_start().starts_with("INDEXED")));
            words.next();
            match words.next() {
                Some("INDEXED") => words.nth(2) == Some("ON"),
                next => next == Some("ON"),
            }
        }
        _ => false,
    }
}

/// Length of the part in parentheses with which `rest` begins, both included.
fn closing(rest: &str) -> usize {
    let mut depth = 0;
    for (at, letter) in rest.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' if depth == 1 => return at + 1,
            ')' => depth -= 1,
            _ => {}
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::postgres_text;

    #[test]
    fn parameters_are_numbered() {
        assert_eq!(postgres_text("a = ? AND b = ? AND c = '?'"), "a = $1 AND b = $2 AND c = '?'");
        assert_eq!(postgres_text("a = ?2 AND b = ?1 AND c = ?12"), "a = $2 AND b = $1 AND c = $12");
        assert_eq!(postgres_text("a = ?3 AND b = ?"), "a = $3 AND b = $4");
    }

    #[test]
    fn types_of_columns_and_hints_go() {
        let sqlite = r#"SELECT id AS "id!: AnswerId", text AS "text?" FROM answers INDEXED BY answers_of_run WHERE id = 'it''s "x!"'"#;
        let postgres = r#"SELECT id AS "id", text AS "text" FROM answers WHERE id = 'it''s "x!"'"#;
        assert_eq!(postgres_text(sqlite), postgres);
    }

    #[test]
    fn a_cross_join_with_a_condition_is_a_join() {
        for table in ["b", "b AS c", "b INDEXED BY x", "b AS c INDEXED BY x", "(SELECT f(1) FROM d) AS c"] {
            let text = postgres_text(&format!("SELECT 1 FROM a CROSS JOIN {table} ON a.id = c.id"));
            assert!(!text.contains("CROSS") && text.contains(" ON ") && !text.contains("INDEXED"), "{text}");
        }
        assert_eq!(postgres_text("SELECT 1 FROM a CROSS JOIN b WHERE 1"), "SELECT 1 FROM a CROSS JOIN b WHERE 1");
    }
}
