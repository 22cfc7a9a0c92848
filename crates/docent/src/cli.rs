//! The command-line arguments. `settings.rs` combines them with the configuration file and the environment.

mod question;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use docent_core::index::Filter;

use crate::settings::{IndexKind, period};
pub use question::{mark_words, typed};

/// A self-hosted tutor for books and documentation sites: answers questions from the book, with citations.
#[derive(Debug, Parser)]
#[command(name = "docent", version, propagate_version = true, max_term_width = 100)]
pub struct Cli {
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
    /// Options that every command accepts.
    #[command(flatten)]
    pub common: Common,
}

/// Options that every command accepts.
#[derive(Debug, Args)]
pub struct Common {
    /// Read settings from this file instead of ./docent.toml
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Folder for the index and the conversations [default: the platform's data folder]
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// Print errors only
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print more details
    #[arg(long, short, global = true)]
    pub verbose: bool,
    /// When to use colors
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub color: Color,
}

/// When to use colors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Recognize a documentation project and write a docent.toml for it
    Init(Init),
    /// Read the sources of a book and build its index
    Ingest(Ingest),
    /// Copy the book to another index, including its vectors (nothing is embedded again)
    Export(Export),
    /// Find the passages that match a question
    Search(Search),
    /// Answer a question from the book, with citations
    Ask(Ask),
    /// Ask questions in an interactive chat
    Chat(Chat),
    /// Quiz yourself about the book, or write flashcards for Anki
    Quiz(Quiz),
    /// List, show, export, reset, delete or copy conversations
    #[command(subcommand)]
    Sessions(Sessions),
    /// Start the server: chat page, widget, HTTP API and MCP
    Serve(Serve),
    /// Start an MCP server on standard input and output
    Mcp,
    /// Write a report of what users asked and what the book does not cover
    Report(Report),
    /// Create an API key for the server
    Key(Key),
    /// Show what is in the index
    Status,
    /// List the modules of the book, or of each book, and its versions and locales
    Modules,
    /// Check the configuration, the files and the models, and suggest fixes
    Doctor,
    /// Measure retrieval and answers on a question set
    Eval(Eval),
    /// Fit the relevance model on questions the book covers and questions it does not
    Calibrate(Calibrate),
    /// Fit the answer verification on claims labeled as supported or not
    CalibrateVerify(CalibrateVerify),
    /// Fit the weights that choose the answering statements, on questions with known answers
    CalibrateReading(CalibrateReading),
    /// Parse the PDFs on standard input (used internally)
    #[command(hide = true)]
    ParsePdf,
    /// Draw a page of a PDF (used internally)
    #[command(hide = true)]
    DrawPdf {
        /// The file
        file: PathBuf,
        /// The number of the page
        page: usize,
    },
}

/// `docent init`
#[derive(Debug, Args)]
pub struct Init {
    /// Folder of the project; docent.toml is written there
    #[arg(value_name = "FOLDER", default_value = ".")]
    pub folder: PathBuf,
    /// URL at which the pages are published [default: from the site generator's configuration]
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// Replace an existing docent.toml
    #[arg(long)]
    pub force: bool,
}

/// `docent ingest`
#[derive(Debug, Args)]
pub struct Ingest {
    /// Folders, files, a corpus.jsonl[.gz], or the URL of a site, its sitemap or its llms.txt; the listed
    /// sources replace the index [default: `[[sources]]` in docent.toml, or the previous ones]
    #[arg(value_name = "SOURCE")]
    pub sources: Vec<String>,
    /// URL at which the folder is published, for links: `https://example.org/docs`
    #[arg(long, value_name = "URL", requires = "sources")]
    pub base_url: Option<String>,
    /// Site generator to use for URLs and anchors [default: detected]
    #[arg(long, value_name = "NAME", requires = "sources", value_parser = ["docusaurus", "mdbook", "sphinx", "mkdocs", "vitepress", "asciidoctor", "plain"])]
    pub layout: Option<String>,
    /// Language of the book, as a two-letter code [default: detected]
    #[arg(long, value_name = "CODE")]
    pub language: Option<String>,
    /// Version of the book that the source contains [default: detected]
    #[arg(long, value_name = "NAME", requires = "sources")]
    pub doc_version: Option<String>,
    /// Locale of the source, such as en or pt-BR [default: detected]
    #[arg(long, value_name = "CODE", requires = "sources")]
    pub locale: Option<String>,
    /// Keep running and re-ingest when files change
    #[arg(long)]
    pub watch: bool,
    /// How sites are crawled.
    #[command(flatten)]
    pub site: Site,
}

/// How `docent ingest` crawls sites; stored with the source.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sites")]
pub struct Site {
    /// Only crawl pages matching this glob: `guide/**` (repeatable)
    #[arg(long, value_name = "GLOB", requires = "sources")]
    pub include: Vec<String>,
    /// Skip pages matching this glob: `**/v1/**` (repeatable)
    #[arg(long, value_name = "GLOB", requires = "sources")]
    pub exclude: Vec<String>,
    /// Maximum number of pages to fetch [default: 10000]
    #[arg(long, value_name = "N", requires = "sources", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_pages: Option<u64>,
    /// Maximum link depth from the start page [default: 50]
    #[arg(long, value_name = "N", requires = "sources")]
    pub max_depth: Option<u64>,
    /// Allow sites on this machine and in private networks
    #[arg(long, requires = "sources")]
    pub allow_private: bool,
}

/// `docent export`
#[derive(Debug, Args)]
pub struct Export {
    /// Target index: `qdrant` (copies from the data folder) or `embedded` (copies from Qdrant)
    #[arg(long, value_enum, value_name = "INDEX")]
    pub to: IndexKind,
}

/// The part of the index that `search`, `ask`, `chat` and `quiz` use.
#[derive(Debug, Clone, Args)]
pub struct Part {
    /// Only use this book, if the index contains several
    #[arg(long, short, value_name = "NAME")]
    pub book: Option<String>,
    /// Only use this module
    #[arg(long, short, value_name = "NAME")]
    pub module: Option<String>,
    /// Version of the book to use, or `all` [default: the book's default version]
    #[arg(long, value_name = "NAME")]
    pub doc_version: Option<String>,
    /// Locale of the book to use, or `all` [default: the book's default locale]
    #[arg(long, value_name = "CODE")]
    pub locale: Option<String>,
}

impl From<Part> for Filter {
    fn from(part: Part) -> Self {
        Self::requested(part.book, part.module, part.doc_version, part.locale)
    }
}

/// `docent search`
#[derive(Debug, Args)]
pub struct Search {
    /// The question (quotes are optional; put `--` before it if it starts with a dash)
    pub query: String,
    /// The remaining words of a question without quotes.
    #[arg(hide = true)]
    pub words: Vec<String>,
    /// Number of passages to show, 1 to 100 [default: 5]
    #[arg(long, short = 'k', value_name = "N")]
    pub top_k: Option<usize>,
    /// Which part of the index to use.
    #[command(flatten)]
    pub part: Part,
    /// Minimum score of a passage, 0.0 to 1.0 [default: 0.0]
    #[arg(long, value_name = "SCORE")]
    pub threshold: Option<f32>,
}

/// `docent ask`
#[derive(Debug, Args)]
pub struct Ask {
    /// The question (quotes are optional; put `--` before it if it starts with a dash)
    pub question: String,
    /// The remaining words of a question without quotes.
    #[arg(hide = true)]
    pub words: Vec<String>,
    /// Conversation to continue, or `new` to start one
    #[arg(long, short, value_name = "ID")]
    pub session: Option<String>,
    /// Which part of the index to use.
    #[command(flatten)]
    pub part: Part,
    /// Number of passages to answer from, 1 to 10 [default: 5]
    #[arg(long, short = 'k', value_name = "N")]
    pub top_k: Option<usize>,
    /// Print the answer only when it is complete
    #[arg(long)]
    pub no_stream: bool,
}

/// `docent chat`
#[derive(Debug, Args)]
pub struct Chat {
    /// Conversation to continue [default: a new one]
    #[arg(long, short, value_name = "ID")]
    pub session: Option<String>,
    /// Which part of the index to use.
    #[command(flatten)]
    pub part: Part,
}

/// `docent quiz`
#[derive(Debug, Args)]
pub struct Quiz {
    /// Page to ask about: its ID, address or title, or a part of one [default: the whole book]
    #[arg(value_name = "PAGE")]
    pub page: Option<String>,
    /// Which part of the index to use.
    #[command(flatten)]
    pub part: Part,
    /// Maximum number of questions, 1 to 1000 [default: all about a page, 20 about the book]
    #[arg(long, short, value_name = "N", value_parser = parse_questions)]
    pub limit: Option<usize>,
    /// Write flashcards for Anki to this file [default limit: 1000]
    #[arg(long, value_name = "FILE")]
    pub anki: Option<PathBuf>,
    /// Do not let the model phrase the questions
    #[arg(long)]
    pub as_written: bool,
}

/// A number of questions.
fn parse_questions(text: &str) -> Result<usize, String> {
    let most = docent_core::quiz::MOST_QUESTIONS;
    let number = text.parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| format!("must be between 1 and {most}"))
}

/// `docent sessions`
#[derive(Debug, Subcommand)]
pub enum Sessions {
    /// List conversations, most recent first
    List {
        /// Maximum number to show
        #[arg(long, default_value_t = 20)]
        limit: usize,
    },
    /// Show a conversation
    Show {
        /// ID of the conversation
        id: String,
    },
    /// Export a conversation as Markdown, or as JSON with --json
    Export {
        /// ID of the conversation
        id: String,
        /// Output file [default: stdout]
        #[arg(long, short, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Clear a conversation's history but keep the conversation
    Reset {
        /// ID of the conversation
        id: String,
    },
    /// Delete a conversation
    Delete {
        /// ID of the conversation
        id: String,
    },
    /// Copy all conversations and the turn log from one store to another
    ///
    /// A store is `sqlite` (the file in the data folder), the path of another SQLite file,
    /// `postgres` (the database set by DOCENT_SESSIONS__URL, sessions.url or DATABASE_URL), or
    /// postgres://user:password@host/database. Prefer `postgres`: other users of the machine can
    /// see a password on the command line.
    ///
    /// Nothing in the target is deleted, so an interrupted copy can be run again, and servers can
    /// keep running. Conversations that were continued in both stores are reported and left as they are.
    Copy {
        /// Store to copy from
        #[arg(long, value_name = "STORE")]
        from: String,
        /// Store to copy to
        #[arg(long, value_name = "STORE")]
        to: String,
    },
}

/// `docent serve`
#[derive(Debug, Args)]
pub struct Serve {
    /// Address to listen on [default: 127.0.0.1:8080]
    #[arg(long, short, value_name = "ADDR")]
    pub listen: Option<String>,
    /// Re-ingest all sources at this interval, such as 30m, 6h or 1d [default: never]
    #[arg(long, value_name = "TIME", value_parser = period)]
    pub every: Option<Duration>,
}

/// `docent report`
#[derive(Debug, Args)]
pub struct Report {
    /// Output file
    #[arg(value_name = "FILE", default_value = "report.html")]
    pub file: PathBuf,
    /// Number of days to include
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub days: u32,
}

/// `docent key`
#[derive(Debug, Args)]
pub struct Key {
    /// Name of the key, for logs and rate limits
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Also allow managing all conversations and reading metrics
    #[arg(long)]
    pub admin: bool,
}

/// `docent eval`
#[derive(Debug, Args)]
pub struct Eval {
    /// Folder with corpus.jsonl[.gz], queries.jsonl and qrels.tsv, or with questions.jsonl
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// For questions.jsonl: folder with the books that the questions refer to [default: use the ingested book]
    #[arg(long, value_name = "DIR")]
    pub books: Option<PathBuf>,
    /// For questions.jsonl: only ask about these books
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub only: Vec<String>,
    /// For questions.jsonl: write each answer as a JSON file to this folder
    #[arg(long, value_name = "DIR")]
    pub answers: Option<PathBuf>,
    /// For corpus.jsonl: write the ranking as a TREC run
    #[arg(long, value_name = "FILE")]
    pub run: Option<PathBuf>,
    /// For corpus.jsonl: report how often another TREC run has an identical top 10
    #[arg(long, value_name = "FILE")]
    pub compare: Option<PathBuf>,
    /// Folder to keep the index in, to reuse it next time [default: a temporary folder]
    #[arg(long, value_name = "DIR")]
    pub index: Option<PathBuf>,
    /// For corpus.jsonl: also ask these out-of-scope questions (should be declined)
    #[arg(long, value_name = "FILE")]
    pub others: Option<PathBuf>,
    /// For corpus.jsonl: write an HTML report with charts and the worst cases
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Restrict --others to these domains
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "others")]
    pub domains: Vec<String>,
}

/// `docent calibrate`
#[derive(Debug, Args)]
pub struct Calibrate {
    /// Folders with corpus.jsonl[.gz] and queries.jsonl (a book and questions it covers), or with
    /// questions.jsonl; DOMAIN is the domain in --others that the book does cover
    #[arg(value_name = "DIR[:DOMAIN]", required = true)]
    pub sets: Vec<String>,
    /// Out-of-scope questions as JSON lines with `question` and `domain` [default: only the
    /// unanswerable questions in each qa.jsonl]
    #[arg(long, value_name = "FILE")]
    pub others: Option<PathBuf>,
    /// For questions.jsonl: folder with the books that the questions refer to
    #[arg(long, value_name = "DIR")]
    pub books: Option<PathBuf>,
    /// Folder to keep the indexes in, to reuse them next time [default: a temporary folder]
    #[arg(long, value_name = "DIR")]
    pub index: Option<PathBuf>,
    /// Only fit the coefficients of the reader, on books it was not trained on
    #[arg(long)]
    pub with_reader: bool,
    /// Write the coefficients to this file
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// `docent calibrate-verify`
#[derive(Debug, Args)]
pub struct CalibrateVerify {
    /// Claims as JSON lines with `claim`, `label`, and `evidence_sentences` or `doc` (a document ID)
    #[arg(value_name = "FILE", required = true)]
    pub claims: Vec<PathBuf>,
    /// Documents that the claims refer to: a corpus.jsonl[.gz]
    #[arg(long, value_name = "FILE")]
    pub corpus: Option<PathBuf>,
    /// Only fit the coefficients of the reader, on claims it was not trained on
    #[arg(long)]
    pub with_reader: bool,
    /// Write the coefficients to this file
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write the score and the signals of every claim to this file, as JSON lines in the order of the claims
    #[arg(long, value_name = "FILE")]
    pub scores: Option<PathBuf>,
}

/// `docent calibrate-reading`
#[derive(Debug, Args)]
pub struct CalibrateReading {
    /// Folder with questions.jsonl
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Folder with the books that the questions refer to
    #[arg(long, value_name = "DIR")]
    pub books: PathBuf,
    /// Only use questions about these books
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Folder to keep the indexes in, to reuse them next time [default: a temporary folder]
    #[arg(long, value_name = "DIR")]
    pub index: Option<PathBuf>,
    /// Only fit the weights of the reader, on books it was not trained on
    #[arg(long)]
    pub with_reader: bool,
    /// Write the weights to this file
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Fit nothing; write what the search finds for each question to this file, as JSON lines
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
}
