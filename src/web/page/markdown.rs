//! Texts of researchers as HTML. They are written in Markdown and shown to strangers, so whatever could run, load or submit
//! something is taken out.

use ammonia::Builder;
use pulldown_cmark::{Event, Options, Parser, html};
use std::collections::HashSet;
use std::sync::LazyLock;

/// Elements that such a text may have. Pictures are none of them: they would tell another server who reads.
const ELEMENTS: [&str; 22] = [
    "a",
    "blockquote",
    "br",
    "code",
    "del",
    "em",
    "h2",
    "h3",
    "h4",
    "hr",
    "li",
    "ol",
    "p",
    "pre",
    "strong",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
];

static CLEANER: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let mut builder = Builder::empty();
    builder
        .tags(HashSet::from(ELEMENTS))
        .tag_attributes([("a", HashSet::from(["href"]))].into())
        .url_schemes(HashSet::from(["https", "http", "mailto"]))
        .url_relative(ammonia::UrlRelative::Deny)
        .clean_content_tags(HashSet::from(["script", "style"]))
        .link_rel(Some("noopener noreferrer nofollow"))
        .set_tag_attribute_value("a", "target", "_blank");
    builder
});

/// Elements within elements go this deep; what lies deeper stays as text. Cleaning costs the square of the depth.
const DEPTH: usize = 12;

/// The events of a text without what is nested too deep.
fn shallow<'a>(events: impl Iterator<Item = Event<'a>>) -> impl Iterator<Item = Event<'a>> {
    let mut depth = 0;
    events.filter(move |event| match event {
        Event::Start(_) => {
            depth += 1;
            depth <= DEPTH
        }
        Event::End(_) => {
            depth -= 1;
            depth < DEPTH
        }
        _ => true,
    })
}

/// A text as HTML that is safe to show.
pub(crate) fn html(text: &str) -> String {
    let mut made = String::new();
    let parser = Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH);
    html::push_html(&mut made, shallow(parser));
    // The page has its own title above.
    let made = made.replace("<h1>", "<h2>").replace("</h1>", "</h2>");
    CLEANER.clean(&made).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_html() {
        assert_eq!(
            html("# Hello\n\nSay *what* you **see**.\n\n- one\n- two").trim(),
            "<h2>Hello</h2>\n<p>Say <em>what</em> you <strong>see</strong>.</p>\n<ul>\n<li>one</li>\n<li>two</li>\n</ul>"
        );
        let link = html("[us](https://example.org/a)");
        assert!(link.contains(r#"href="https://example.org/a""#) && link.contains("noopener"), "{link}");
    }

    #[test]
    fn deep_nesting_becomes_shallow_and_keeps_its_words() {
        let made = html(&format!("{} deep *down*", ">".repeat(10_000)));
        assert_eq!(made.matches("<blockquote>").count(), DEPTH, "{made}");
        assert_eq!(made.matches("<blockquote>").count(), made.matches("</blockquote>").count());
        assert!(made.contains("deep") && made.contains("down"));
    }

    #[test]
    fn nothing_in_them_runs_loads_or_submits() {
        for hostile in [
            "<script>alert(1)</script>",
            "<img src=x onerror=alert(1)>",
            "![tracker](https://example.org/pixel.png)",
            "[click](javascript:alert(1))",
            "<a href=\"data:text/html,<script>1</script>\">x</a>",
            "<form action=\"/study/x/leave\" method=post><button>x</button></form>",
            "<iframe src=\"https://example.org\"></iframe>",
            "<style>body{display:none}</style>",
            "<p style=\"position:fixed\" onclick=\"x()\" id=\"main\">x</p>",
            "<svg><script>alert(1)</script></svg>",
            "<base href=//example.org>",
            "<meta http-equiv=refresh content=0;url=//example.org>",
        ] {
            let made = html(hostile).to_lowercase();
            for bad in [
                "<script",
                "onerror",
                "<img",
                "javascript:",
                "data:",
                "<form",
                "<button",
                "<iframe",
                "<style",
                "style=",
                "onclick",
                "id=",
                "<svg",
                "<base",
                "<meta",
            ] {
                assert!(!made.contains(bad), "{hostile} became {made}");
            }
        }
    }
}
