//! Lines of files, each within a limit of length.

use std::io::{self, BufRead, Read};

/// The end of reading a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// There is none any more.
    End,
    /// It is in the buffer, with its end where it has one.
    Whole,
    /// It has more bytes than are read, and was passed over.
    TooLong,
}

/// Reads the next line into `bytes`, which is emptied first.
pub(super) fn next(file: &mut impl BufRead, longest: u64, bytes: &mut Vec<u8>) -> io::Result<Line> {
    bytes.clear();
    if file.take(longest + 1).read_until(b'\n', bytes)? == 0 {
        return Ok(Line::End);
    }
    if bytes.len() as u64 > longest && !bytes.ends_with(b"\n") {
        skip(file)?;
        return Ok(Line::TooLong);
    }
    Ok(Line::Whole)
}

/// Passes over the rest of a line.
fn skip(file: &mut impl BufRead) -> io::Result<()> {
    loop {
        let piece = file.fill_buf()?;
        if piece.is_empty() {
            return Ok(());
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(piece.len(), |at| at + 1);
        file.consume(taken);
        if end.is_some() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_passed_over_and_the_next_one_is_read() {
        let mut file = "abcd\nabcdefgh\n\nab".as_bytes();
        let mut bytes = Vec::new();
        let mut found = Vec::new();
        loop {
            match next(&mut file, 4, &mut bytes).unwrap() {
                Line::End => break,
                line => found.push((line, String::from_utf8(bytes.clone()).unwrap())),
            }
        }
        let whole = |text: &str| (Line::Whole, text.to_owned());
        assert_eq!(found[0], whole("abcd\n"));
        assert_eq!(found[1].0, Line::TooLong);
        assert_eq!(found[2..], [whole("\n"), whole("ab")]);
    }
}
