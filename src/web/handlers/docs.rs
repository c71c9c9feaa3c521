//! The documentation, out of the binary, so that it is there without a network and fits the version that runs: README,
//! `docs/` and the other texts of the repository as pages, and the licence.

use crate::web::error::{Error, Result};
use crate::web::extractors::input::Path;
use crate::web::page::assets;
use crate::web::page::{self, Page};
use askama::Template;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};
use rust_embed::RustEmbed;

/// Texts and pictures of `docs/`. `build.rs` has this crate compiled again when one comes or goes.
#[derive(RustEmbed)]
#[folder = "docs/"]
struct Folder;

/// Texts beside the folder: (name in the address, file, content). The first is the page that `/docs` shows.
const BESIDE: [(&str, &str, &str); 4] = [
    ("", "README.md", include_str!("../../../README.md")),
    ("benchmarks", "BENCHMARKS.md", include_str!("../../../BENCHMARKS.md")),
    ("changelog", "CHANGELOG.md", include_str!("../../../CHANGELOG.md")),
    ("contributing", "CONTRIBUTING.md", include_str!("../../../CONTRIBUTING.md")),
];

/// Name in the address of the folder's own list.
const CONTENTS: &str = "contents";

/// The licences at the user's choice.
const LICENCES: [(&str, &str); 2] = [
    ("MIT", include_str!("../../../docs/licences/MIT.txt")),
    ("Apache-2.0", include_str!("../../../docs/licences/Apache-2.0.txt")),
];

/// The text that an address names, and the folder that its links start from.
fn source(name: &str) -> Option<(String, String)> {
    if let Some((.., text)) = BESIDE.iter().find(|(known, ..)| *known == name) {
        return Some(((*text).to_owned(), String::new()));
    }
    let file = if name == CONTENTS { "README.md".to_owned() } else { format!("{name}.md") };
    let bytes = Folder::get(&file)?.data;
    let folder = file.rsplit_once('/').map_or("docs".to_owned(), |(inner, _)| format!("docs/{inner}"));
    Some((String::from_utf8_lossy(&bytes).into_owned(), folder))
}

/// The path from the root of the repository that a link of a text in `folder` names.
fn resolve(link: &str, folder: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// The address on this server that a link of a text leads to; `None` for a file that has no page.
fn target(link: &str, folder: &str) -> Option<String> {
    let (file, fragment) = link.split_once('#').map_or((link, String::new()), |(file, at)| (file, format!("#{at}")));
    if file.is_empty() {
        return Some(fragment);
    }
    let path = resolve(file, folder);
    let page = match path.strip_prefix("docs/") {
        _ if path == "docs" => format!("/docs/{CONTENTS}"),
        Some("README.md") => format!("/docs/{CONTENTS}"),
        Some(inner) if inner.starts_with("licences/") => "/licence".to_owned(),
        Some(inner) if Folder::get(inner).is_some() => format!("/docs/{}", inner.trim_end_matches(".md")),
        Some(_) => return None,
        None => match BESIDE.iter().find(|(_, known, _)| *known == path)?.0 {
            "" => "/docs".to_owned(),
            name => format!("/docs/{name}"),
        },
    };
    Some(format!("{page}{fragment}"))
}

/// A heading as the end of an address: lower case, hyphens for what is no letter or digit.
fn slug(text: &str) -> String {
    let plain: String = text
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect();
    plain.trim_matches('-').to_owned()
}

/// A text as HTML without styles in attributes, which the pages' policy forbids; its title, and its headings' names.
struct Rendered {
    title: String,
    html: String,
    #[cfg(test)]
    headings: Vec<String>,
}

fn render(text: &str, folder: &str, page: &Page) -> Rendered {
    let mut events: Vec<Event> =
        Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH).collect();
    let (mut title, mut headings) = (String::new(), Vec::new());
    for at in 0..events.len() {
        let Event::Start(Tag::Heading { level, .. }) = events[at] else { continue };
        let inner = events[at + 1..].iter().take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
        let words: String = inner
            .filter_map(|event| match event {
                Event::Text(text) | Event::Code(text) => Some(text.as_ref()),
                _ => None,
            })
            .collect();
        let mut name = slug(&words);
        if headings.contains(&name) {
            name = format!("{name}-{}", headings.len());
        }
        if let Event::Start(Tag::Heading { id, .. }) = &mut events[at] {
            *id = Some(CowStr::from(name.clone()));
        }
        headings.push(name);
        if title.is_empty() && level == HeadingLevel::H1 {
            title = words;
        }
    }
    // A link to a file that has no page is text.
    let mut linked = true;
    let events = events.into_iter().flat_map(|event| match event {
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
            let outside = dest_url.contains("://");
            let to = if outside { Some(dest_url.to_string()) } else { target(&dest_url, folder) };
            linked = to.is_some();
            let own = |path: String| if outside || path.starts_with('#') { path } else { page.url(&path) };
            to.map(|to| Event::Start(Tag::Link { link_type, dest_url: own(to).into(), title, id }))
                .into_iter()
                .collect()
        }
        Event::End(TagEnd::Link) => {
            if linked {
                vec![event]
            } else {
                vec![]
            }
        }
        Event::Start(Tag::Image { link_type, dest_url, title, id }) => {
            let to = target(&dest_url, folder).map_or(dest_url.to_string(), |path| page.url(&path));
            vec![Event::Start(Tag::Image { link_type, dest_url: to.into(), title, id })]
        }
        Event::Start(Tag::Table(_)) => vec![Event::Html("<div class=\"scroll\" tabindex=\"0\">".into()), event],
        Event::End(TagEnd::Table) => vec![event, Event::Html("</div>".into())],
        Event::InlineHtml(tag) if ["<sup>", "</sup>", "<sub>", "</sub>"].contains(&tag.as_ref()) => {
            vec![Event::InlineHtml(tag)]
        }
        Event::Html(text) | Event::InlineHtml(text) => vec![Event::Text(text)],
        event => vec![event],
    });
    let mut out = String::new();
    html::push_html(&mut out, events);
    let html = out
        .replace(" style=\"text-align: right\"", " class=\"number\"")
        .replace(" style=\"text-align: left\"", "")
        .replace(" style=\"text-align: center\"", "")
        // Blocks that scroll must be reachable by keyboard.
        .replace("<pre>", "<pre tabindex=\"0\">");
    Rendered {
        title,
        html,
        #[cfg(test)]
        headings,
    }
}

/// A page in the list of all.
struct Listed {
    title: String,
    address: String,
    current: bool,
}

/// All pages, README first, those of the folder by title.
fn listed(current: &str, page: &Page) -> Vec<Listed> {
    let mut names: Vec<String> = Folder::iter()
        .filter(|file| !file.contains('/') && file.as_ref() != "README.md")
        .filter_map(|file| Some(file.strip_suffix(".md")?.to_owned()))
        .collect();
    names.sort();
    names.insert(0, String::new());
    names.extend(["benchmarks", "changelog", "contributing"].map(str::to_owned));
    let entry = |name: String| {
        let (text, _) = source(&name)?;
        let title = text.lines().find_map(|line| line.strip_prefix("# "))?.to_owned();
        let address = if name.is_empty() { page.url("/docs") } else { page.url(&format!("/docs/{name}")) };
        Some(Listed { title, address, current: name == current })
    };
    names.into_iter().filter_map(entry).collect()
}

#[derive(Template)]
#[template(path = "docs.html")]
struct DocsPage {
    page: Page,
    title: String,
    html: String,
    pages: Vec<Listed>,
}

fn show(name: &str, page: Page) -> Result<Response> {
    let (text, folder) = source(name).ok_or(Error::NotFound("the page"))?;
    let Rendered { title, html, .. } = render(&text, &folder, &page);
    let pages = listed(name, &page);
    Ok(page::html(&DocsPage { page, title, html, pages }))
}

/// `GET /docs`: what the program is and how it is used.
pub(crate) async fn index(page: Page) -> Result<Response> {
    show("", page)
}

/// `GET /docs/{page}`: one of the texts, a picture in them, settings of a proxy to copy, an example, or the
/// description of the addresses of programs.
pub(crate) async fn page(Path(name): Path<String>, page: Page) -> Result<Response> {
    if name.starts_with("images/")
        && let Some(file) = Folder::get(&name)
        && name.ends_with(".png")
    {
        return Ok(([(header::CONTENT_TYPE, "image/png")], file.data.into_owned()).into_response());
    }
    if (name.starts_with("deploy/") || name.starts_with("examples/") || name == "openapi.json")
        && let Some(file) = Folder::get(&name)
    {
        return Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], file.data.into_owned()).into_response());
    }
    show(&name, page)
}

#[derive(Template)]
#[template(path = "licence.html")]
struct LicencePage {
    page: Page,
    licences: [(&'static str, &'static str); 2],
    /// Licences of the pages' libraries: whose, and the file under `/static`.
    others: Vec<(String, String)>,
}

/// `GET /licence`: under which licences the program may be used, and those of the libraries in its pages.
pub(crate) async fn licence(page: Page) -> Response {
    let others = assets::vendor_files()
        .into_iter()
        .filter_map(|(file, _)| {
            let name = file.strip_prefix("vendor/")?.strip_suffix(".LICENSE.txt")?.to_owned();
            Some((name, page.asset(&file)))
        })
        .collect();
    page::html(&LicencePage { page, licences: LICENCES, others })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<String> {
        let page = Page::for_tests("/iliad");
        listed("", &page)
            .into_iter()
            .map(|one| one.address.trim_start_matches("/iliad/docs").replacen('/', "", 1))
            .collect()
    }

    /// Every link to a heading leads to one, and every link to a Markdown file to a page.
    #[test]
    fn the_texts_are_pages_and_their_links_lead_somewhere() {
        let page = Page::for_tests("/iliad");
        // The list of pages names no page in a folder; the records of decisions are such pages.
        let decisions = Folder::iter().filter(|file| file.starts_with("decisions/"));
        let decisions = decisions.map(|file| file.trim_end_matches(".md").to_owned());
        let names: Vec<String> = all().into_iter().chain([CONTENTS.to_owned()]).chain(decisions).collect();
        assert!(names.len() > 10, "{names:?}");
        for name in &names {
            let (text, folder) = source(name).unwrap();
            let shown = render(&text, &folder, &page);
            assert!(!shown.title.is_empty() && !shown.html.contains("style="), "{name}");
            for event in Parser::new_ext(&text, Options::ENABLE_TABLES) {
                let (Event::Start(Tag::Link { dest_url, .. }) | Event::Start(Tag::Image { dest_url, .. })) = event
                else {
                    continue;
                };
                if dest_url.contains("://") {
                    continue;
                }
                let to = target(&dest_url, &folder);
                let to = to.unwrap_or_else(|| panic!("{name} links to {dest_url}, which has no page"));
                let Some((path, fragment)) = to.split_once('#') else { continue };
                let there = match path.strip_prefix("/docs") {
                    Some(rest) => rest.trim_start_matches('/').to_owned(),
                    None => name.clone(),
                };
                let (other, folder) = source(&there).unwrap();
                let headings = render(&other, &folder, &page).headings;
                assert!(headings.iter().any(|h| h == fragment), "{name} links to {dest_url}; there are {headings:?}");
            }
        }
    }

    #[test]
    fn addresses_are_this_servers_and_files_without_a_page_are_text() {
        let page = Page::for_tests("/iliad");
        let shown = render(
            "# A `b`\n[x](store.md#the-queue) [y](../src/main.rs) [z](https://e.org) <b>c</b>\n\n|a|\n|-:|\n|1|",
            "docs",
            &page,
        );
        assert_eq!(shown.title, "A b");
        assert!(shown.html.contains("<a href=\"/iliad/docs/store#the-queue\">x</a> y <a href=\"https://e.org\">z</a>"));
        assert!(shown.html.contains("&lt;b&gt;") && shown.html.contains("class=\"number\""), "{}", shown.html);
        assert!(shown.html.contains("<h1 id=\"a-b\">"), "{}", shown.html);
    }
}
