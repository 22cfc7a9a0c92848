//! Opens fifty citations of all books in a browser, which must highlight the quoted words.
//!
//! The test checks what a user sees: `::target-text` paints the words named by a link in a special color, the
//! pages are far longer than the window, and a screenshot of the window shows which words have that color.
//! They must be words of the quote, and most of it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use docent_backends::source::Read;
use docent_core::chunk::chunk;
use docent_core::unit::units;
use docent_testkit::ScriptedSite;
use scraper::{Html, Selector};
use serde_json::{Value, json};

use crate::browser::{Browser, TIMEOUT, browse};
use crate::rendered::{Book, books, pages_in, publish, read_site, read_source};
use crate::support::{Docent, shared_data};

/// The number of links to open.
const LINKS: usize = 50;

/// Selects the links; another number selects others.
const SEED: u64 = 0x7151_D311;

/// Paints the words named by a link, and moves everything far below the first window.
const PAINT: &str = "<style>::target-text { color: #f0f !important; background: #f0f !important; }</style>";
const SPACE: &str = "<div style=\"height: 4000px\"></div>";

/// A citation as returned by Docent.
struct Link {
    book: &'static str,
    url: String,
    quote: String,
}

#[tokio::test]
async fn fifty_links_highlight_the_words_they_quote() {
    let given = given().await;
    let (mut links, mut seen) = (Vec::new(), BTreeSet::new());
    for (number, book) in given.iter().enumerate() {
        let wanted = LINKS * (number + 1) / given.len() - links.len();
        links.extend(citations(book, wanted, &mut Random(SEED + number as u64), &mut seen));
    }
    assert_eq!(links.len(), LINKS);
    browse("highlights", async |browser| {
        browser.sized(1200, 1600).await;
        let mut wrong = Vec::new();
        for link in &links {
            wrong.extend(opened(browser, link).await.err());
        }
        eprintln!("{} of {} links highlight the words they quote", links.len() - wrong.len(), links.len());
        // A quote may extend into a closed tab, or over words that the page renders differently.
        assert!(wrong.len() <= MOST_UNMARKED, "{}", wrong.join("\n"));
    })
    .await;
}

/// Quotes over several blocks that no link can highlight completely.
const MOST_UNMARKED: usize = 2;

/// A book as it is ingested, with its flags.
struct Given {
    book: &'static str,
    arguments: Vec<String>,
    /// Its pages, to choose from.
    pages: Read,
    /// The text of closed tabs, which no link can highlight.
    hidden: String,
    _site: Arc<ScriptedSite>,
}

/// Every book twice: as published, and from its sources.
async fn given() -> Vec<Given> {
    let mut given = Vec::new();
    let mut books = books();
    if let Some(shared) = shared_data() {
        let rendered = shared.join("books/python-html");
        books.push(Book { name: "Python", source: rendered.join("tutorial"), rendered, below: "/tutorial" });
    }
    for book in books {
        let site = Arc::new(publish(&book.rendered, painted));
        let base = format!("{}{}", site.url(), book.below);
        let address = format!("{base}/");
        let source = book.source.to_str().unwrap().to_owned();
        let ways = [
            (vec![address.clone(), "--allow-private".to_owned()], read_site(&address).await),
            (vec![source, "--base-url".to_owned(), base.clone()], read_source(&book.source, &base)),
        ];
        let hidden = hidden_words(&book.rendered);
        given.extend(ways.map(|(arguments, pages)| Given {
            book: book.name,
            arguments,
            pages,
            hidden: hidden.clone(),
            _site: site.clone(),
        }));
    }
    given
}

/// A page with painted links, far below the first window.
fn painted(page: String) -> String {
    let body = page.find("<body").and_then(|at| Some(at + page[at..].find('>')? + 1)).unwrap_or(0);
    format!("{}{PAINT}{SPACE}{}{SPACE}", &page[..body], &page[body..])
}

fn hidden_words(folder: &Path) -> String {
    let hidden = Selector::parse("[hidden]").unwrap();
    let mut words = String::new();
    for file in pages_in(folder) {
        let page = Html::parse_document(&std::fs::read_to_string(file).unwrap());
        words.extend(page.select(&hidden).map(|element| signs(&element.text().collect::<String>()) + " "));
    }
    words
}

/// Citations of random passages: each passage is searched by its own words.
fn citations(given: &Given, wanted: usize, random: &mut Random, seen: &mut BTreeSet<String>) -> Vec<Link> {
    let docent = Docent::without_vectors();
    let arguments: Vec<&str> = given.arguments.iter().map(String::as_str).collect();
    docent.ok(&[&["ingest", "--quiet"], &arguments[..]].concat());
    let mut pieces: Vec<String> = Vec::new();
    for document in &given.pages.documents {
        for chunk in chunk(document, 256, &|text| text.len().div_ceil(4)) {
            pieces.extend(units(&chunk.content).into_iter().map(|unit| chunk.content[unit.span].to_owned()));
        }
    }
    pieces.retain(|piece| piece.split_whitespace().count() > 3 && piece.len() < 600);
    pieces.sort();
    let mut links: Vec<Link> = Vec::new();
    while links.len() < wanted && !pieces.is_empty() {
        let piece = pieces.swap_remove(random.below(pieces.len()));
        let answer = docent.ok(&["ask", "--json", "--no-stream", "--", &piece]);
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let text = |citation: &Value, name: &str| citation[name].as_str().unwrap().to_owned();
        let fresh = answer["citations"].as_array().unwrap().iter().find(|citation| {
            let is_shown = !given.hidden.contains(&shown(&text(citation, "quote")));
            is_shown && seen.insert(text(citation, "url"))
        });
        links.extend(fresh.map(|citation| Link {
            book: given.book,
            url: text(citation, "url"),
            quote: text(citation, "quote"),
        }));
    }
    assert_eq!(links.len(), wanted, "not enough passages to cite in {}", given.book);
    links
}

/// Opens a link and waits until its words are highlighted; returns what is wrong if they never are.
async fn opened(browser: &Browser, link: &Link) -> Result<(), String> {
    // Start from another page, so that the browser searches for the words as on a first visit.
    browser.open("about:blank").await;
    browser.open(&link.url).await;
    let last = tokio::time::Instant::now() + TIMEOUT;
    loop {
        let picture = browser.driver.screenshot_as_png_base64().await.unwrap();
        let found = browser.driver.execute_async(PAINTED_WORDS, vec![json!(picture)]).await.unwrap();
        let marked: Vec<String> = serde_json::from_value(found.json().clone()).unwrap();
        match judge(&link.quote, &marked) {
            Err(reason) if tokio::time::Instant::now() > last => {
                let Link { book, url, quote } = link;
                return Err(format!("{book}: {url}\n  {reason}\n  quote: {quote:?}\n  marked: {marked:?}"));
            }
            Err(_) => {}
            Ok(()) => return Ok(()),
        }
    }
}

/// Every word of the page that is painted in the screenshot.
const PAINTED_WORDS: &str = "
    const [picture, finished] = arguments;
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement('canvas');
      canvas.width = image.width; canvas.height = image.height;
      const context = canvas.getContext('2d', { willReadFrequently: true });
      context.drawImage(image, 0, 0);
      const painted = ({ left, top, width, height }) => {
        if (width < 1 || height < 1 || left < 0 || top < 0 || top + height > innerHeight) return false;
        const { data } = context.getImageData(left, top, Math.ceil(width), Math.ceil(height));
        let count = 0;
        for (let at = 0; at < data.length; at += 4) {
          if (data[at] > 200 && data[at + 1] < 60 && data[at + 2] > 200) count += 1;
        }
        return count > data.length / 8;
      };
      const words = [];
      const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        for (const { 0: word, index } of walker.currentNode.data.matchAll(/\\S+/g)) {
          const range = new Range();
          range.setStart(walker.currentNode, index);
          range.setEnd(walker.currentNode, index + word.length);
          if ([...range.getClientRects()].some(painted)) words.push(word);
        }
      }
      finished(words);
    };
    image.src = `data:image/png;base64,${picture}`;";

/// Checks that the highlighted words belong to the quote and cover at least half of it.
fn judge(quote: &str, marked: &[String]) -> Result<(), String> {
    let quoted = shown(quote);
    let marked = signs(&marked.join(" "));
    if marked.is_empty() {
        Err("nothing is marked".to_owned())
    } else if !consists_of_parts(&marked, &quoted) {
        Err("other words are marked".to_owned())
    } else if marked.len() * 2 < quoted.len() {
        Err("less than half is marked".to_owned())
    } else {
        Ok(())
    }
}

/// Whether `marked` is made of parts of `quoted`, in order. A link highlights each block of a quote separately.
fn consists_of_parts(mut marked: &str, mut quoted: &str) -> bool {
    const SHORTEST_PART: usize = 5;
    while !marked.is_empty() {
        let lengths = (1..=marked.len()).rev().filter(|length| marked.is_char_boundary(*length));
        let part = lengths.map(|length| &marked[..length]).find_map(|part| Some((part, quoted.find(part)?)));
        let Some((part, at)) = part.filter(|(part, _)| part.len() >= SHORTEST_PART.min(marked.len())) else {
            return false;
        };
        quoted = &quoted[at + part.len()..];
        marked = &marked[part.len()..];
    }
    true
}

/// The visible text of a quote: without fences, and without the item numbers that the browser draws.
fn shown(quote: &str) -> String {
    let lines = quote.lines().map(str::trim).filter(|line| !line.starts_with("```"));
    let items = lines.map(|line| match line.split_once(". ") {
        Some((number, text)) if number.parse::<u32>().is_ok() => text,
        _ => line,
    });
    items.map(signs).collect()
}

/// Letters and digits in lower case.
fn signs(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Pseudo-random numbers, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}
