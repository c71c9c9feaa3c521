//! shim
pub fn tokenise(text: &str, _known: &dyn Fn(&str) -> bool) -> Vec<String> {
    text.to_lowercase().split_whitespace().map(str::to_owned).collect()
}
