//! Python 3's `re.sub`, with a bound.
//!
//! REGEX executions are defined by Python (the paper executes them with `re.sub`), and no Rust crate accepts, rejects
//! and matches exactly as Python does. This engine follows Python 3.11: its grammar of patterns (what compiles and what
//! does not), the order in which its matcher tries things, what groups hold afterwards, its replacement templates and
//! the way `re.sub` treats empty matches (3.7 and later: an empty match right after a non-empty one counts).
//!
//! Intended differences:
//! - A substitution that needs more than [`STEP_LIMIT`] steps, or a backtracking stack of more than [`DEPTH_LIMIT`]
//!   entries, or that writes more than [`OUTPUT_LIMIT`] bytes, ends with [`ReError::Bound`]; Python would go on,
//!   perhaps for ever, or until memory is used up.
//! - Groups may be nested [`NESTING_LIMIT`] deep; Python's limit depends on its recursion limit and its caller.
//! - `\N{NAME}` is refused: the engine does not carry the Unicode name table.
//! - Group names outside ASCII are judged by Rust's letters and digits rather than by Python's identifier tables.
//!
//! Later versions of Python differ in corners: 3.12 refuses group numbers such as `\g< 2 >` and `\g<+2>`, which 3.11 takes.
//! Letter case, `\w`, `\d` and `\s` beyond ASCII follow Unicode 14, as Python 3.11 does.

mod compile;
mod escapes;
mod matcher;
mod parse;
mod substitute;
mod syntax;
mod template;
mod unicode;
mod unicode_tables;

pub use template::Template;

use compile::Program;
pub use matcher::Scratch;

/// Steps one substitution may take (an instruction or a character looked at is a step), about a twentieth of a second.
pub const STEP_LIMIT: u64 = 5_000_000;

/// Entries the backtracking stack may hold at a time.
pub const DEPTH_LIMIT: usize = 1_000_000;

/// Bytes that a substitution may write: a long replacement at each letter of a long word would fill any memory.
pub const OUTPUT_LIMIT: usize = 16 << 20;

/// The largest depth of nested groups.
pub const NESTING_LIMIT: usize = 480;

/// The reason why a pattern or template is refused, or a substitution was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReError {
    /// Python's `re.compile` (or the template's parser) refuses it; the text says why.
    #[error("{0}")]
    Syntax(&'static str),
    /// The step, depth or output bound was reached.
    #[error("the expression needs too many steps or writes too much")]
    Bound,
}

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Regex {
    program: Program,
}

impl Regex {
    /// Compiles a pattern as `re.compile(pattern)` does.
    ///
    /// # Errors
    /// [`ReError::Syntax`] where Python raises an error.
    pub fn new(pattern: &str) -> Result<Regex, ReError> {
        let parsed = parse::parse(pattern)?;
        Ok(Regex { program: compile::compile(parsed)? })
    }

    /// Number of capturing groups.
    pub fn groups(&self) -> usize {
        self.program.groups
    }

    /// Parses a replacement template for this pattern.
    ///
    /// # Errors
    /// [`ReError::Syntax`] for bad escapes and for groups the pattern does not have.
    pub fn template(&self, replacement: &str) -> Result<Template, ReError> {
        template::parse(replacement, &self.program)
    }

    /// `pattern.sub(template, text)`. The scratch space is reused from call to call.
    ///
    /// # Errors
    /// [`ReError::Bound`] when a bound is reached.
    pub fn sub(&self, template: &Template, text: &str, scratch: &mut Scratch) -> Result<String, ReError> {
        substitute::sub(&self.program, template, text, scratch)
    }

    /// The matches that [`Regex::sub`] replaces, as positions of characters.
    ///
    /// # Errors
    /// [`ReError::Bound`] when a bound is reached.
    pub fn matches(&self, text: &str, scratch: &mut Scratch) -> Result<Vec<(usize, usize)>, ReError> {
        substitute::matches(&self.program, text, scratch)
    }

    /// The places within these matches that [`Regex::sub`] writes anew, each with what stands there afterwards.
    ///
    /// # Errors
    /// [`ReError::Bound`] when a bound is reached.
    pub fn replaced(
        &self,
        template: &Template,
        text: &str,
        scratch: &mut Scratch,
    ) -> Result<Vec<(usize, usize, String)>, ReError> {
        substitute::replaced(&self.program, template, text, scratch)
    }
}

/// `re.sub(pattern, replacement, text)` in one call.
///
/// # Errors
/// As [`Regex::new`], [`Regex::template`] and [`Regex::sub`].
pub fn sub(pattern: &str, replacement: &str, text: &str) -> Result<String, ReError> {
    let regex = Regex::new(pattern)?;
    let template = regex.template(replacement)?;
    regex.sub(&template, text, &mut Scratch::default())
}
