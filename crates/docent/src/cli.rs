//! The command line as it is declared; `settings.rs` resolves what it means.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use docent_core::index::Filter;

use crate::settings::{IndexKind, period};

/// A tutor that lives in a book: finds, in a textbook or a documentation site, the passages that answer a question.
#[derive(Debug, Parser)]
#[command(name = "docent", version, propagate_version = true, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Settings for every command.
    #[command(flatten)]
    pub common: Common,
}

/// Flags every command takes.
#[derive(Debug, Args)]
pub struct Common {
    /// Read settings from this file instead of ./docent.toml
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Keep the index here [default: the platform's data folder]
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// Print errors only
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print more
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
    /// Read a book into the index
    Ingest(Ingest),
    /// Move the book to another index: its vectors go along, nothing is embedded again
    Export(Export),
    /// Find the passages for a question
    Search(Search),
    /// Answer a question from the book, with citations
    Ask(Ask),
    /// Talk with the book
    Chat(Chat),
    /// List, show, export, reset, delete or copy conversations
    #[command(subcommand)]
    Sessions(Sessions),
    /// Serve the book: chat page, widget, HTTP API, MCP
    Serve(Serve),
    /// Serve the book to programs that speak MCP, on standard input and output
    Mcp,
    /// Write the owner's report: what was asked, and what the book lacks
    Report(Report),
    /// Make a key for the server
    Key(Key),
    /// Show what is in the index
    Status,
    /// List the modules of the book, or of each book
    Modules,
    /// Check the configuration, the files and the model, and say what to do
    Doctor,
    /// Measure retrieval and answers on a question set in the BEIR layout
    Eval(Eval),
    /// Fit the relevance model on questions the book covers and questions it does not
    Calibrate(Calibrate),
    /// Fit the check of answers on claims that are known to be supported or not
    CalibrateVerify(CalibrateVerify),
}

/// `docent ingest`
#[derive(Debug, Args)]
pub struct Ingest {
    /// Folders, files, the address of a site, of its sitemap or llms.txt, or a corpus.jsonl[.gz];
    /// together they are the whole book [default: the sources that docent.toml lists, or those of last time]
    #[arg(value_name = "SOURCE")]
    pub sources: Vec<String>,
    /// Where the folder is published, for links: `https://example.org/docs`
    #[arg(long, value_name = "URL", requires = "sources")]
    pub base_url: Option<String>,
    /// The generator whose rules make addresses [default: detected]
    #[arg(long, value_name = "NAME", requires = "sources", value_parser = ["docusaurus", "mdbook", "sphinx", "mkdocs", "vitepress", "asciidoctor", "plain"])]
    pub layout: Option<String>,
    /// The book's language, as a two-letter code [default: detected]
    #[arg(long, value_name = "CODE")]
    pub language: Option<String>,
    /// Stay, and read the folders again whenever their files change
    #[arg(long)]
    pub watch: bool,
    /// How sites are read.
    #[command(flatten)]
    pub site: Site,
}

/// How `docent ingest` reads sites; remembered with the source.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sites")]
pub struct Site {
    /// Only pages this pattern fits: `guide/**`; may be repeated
    #[arg(long, value_name = "GLOB", requires = "sources")]
    pub include: Vec<String>,
    /// No pages this pattern fits: `**/v1/**`; may be repeated
    #[arg(long, value_name = "GLOB", requires = "sources")]
    pub exclude: Vec<String>,
    /// Ask for at most so many pages [default: 10000]
    #[arg(long, value_name = "N", requires = "sources", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_pages: Option<u64>,
    /// Follow at most so many links from the start to a page [default: 50]
    #[arg(long, value_name = "N", requires = "sources")]
    pub max_depth: Option<u64>,
    /// Also read sites on this machine and in private networks
    #[arg(long, requires = "sources")]
    pub allow_private: bool,
}

/// `docent export`
#[derive(Debug, Args)]
pub struct Export {
    /// Where to: `qdrant` (from the data folder) or `embedded` (back from Qdrant)
    #[arg(long, value_enum, value_name = "INDEX")]
    pub to: IndexKind,
}

/// What `search`, `ask` and `chat` look at.
#[derive(Debug, Clone, Args)]
pub struct Part {
    /// Only passages of this book, where there are several
    #[arg(long, short, value_name = "NAME")]
    pub book: Option<String>,
    /// Only passages of this module
    #[arg(long, short, value_name = "NAME")]
    pub module: Option<String>,
}

impl From<Part> for Filter {
    fn from(part: Part) -> Self {
        Self { book: part.book, module: part.module }
    }
}

/// `docent search`
#[derive(Debug, Args)]
pub struct Search {
    /// The question
    #[arg(allow_hyphen_values = true)]
    pub query: String,
    /// How many passages, 1 to 100 [default: 5]
    #[arg(long, short = 'k', value_name = "N")]
    pub top_k: Option<usize>,
    /// Which part of the index.
    #[command(flatten)]
    pub part: Part,
    /// Only passages with at least this score, 0.0 to 1.0 [default: 0.0]
    #[arg(long, value_name = "SCORE")]
    pub threshold: Option<f32>,
}

/// `docent ask`
#[derive(Debug, Args)]
pub struct Ask {
    /// The question
    #[arg(allow_hyphen_values = true)]
    pub question: String,
    /// Continue this conversation, or `new` for a new one
    #[arg(long, short, value_name = "ID")]
    pub session: Option<String>,
    /// Which part of the index.
    #[command(flatten)]
    pub part: Part,
    /// How many passages to answer from, 1 to 10 [default: 5]
    #[arg(long, short = 'k', value_name = "N")]
    pub top_k: Option<usize>,
    /// Print the answer when it is complete, not sentence by sentence
    #[arg(long)]
    pub no_stream: bool,
}

/// `docent chat`
#[derive(Debug, Args)]
pub struct Chat {
    /// Continue this conversation [default: a new one]
    #[arg(long, short, value_name = "ID")]
    pub session: Option<String>,
    /// Which part of the index.
    #[command(flatten)]
    pub part: Part,
}

/// `docent sessions`
#[derive(Debug, Subcommand)]
pub enum Sessions {
    /// The conversations there are, the last used first
    List {
        /// How many to show
        #[arg(long, default_value_t = 20)]
        limit: usize,
    },
    /// One conversation
    Show {
        /// Its id
        id: String,
    },
    /// One conversation as Markdown, or as JSON with --json
    Export {
        /// Its id
        id: String,
        /// Where to [default: stdout]
        #[arg(long, short, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Clear a conversation's history; it stays
    Reset {
        /// Its id
        id: String,
    },
    /// Remove a conversation
    Delete {
        /// Its id
        id: String,
    },
    /// Copy all conversations, and the owner's log, from one store to another
    ///
    /// A store is `sqlite` (the file in the data folder), the path of another such file,
    /// `postgres` (the database that DOCENT_SESSIONS__URL, sessions.url or DATABASE_URL names), or
    /// postgres://user:password@host/database. A password on a command line is seen by others on
    /// the machine: `postgres` keeps it out.
    ///
    /// What is there already stays, so a copy can be interrupted and run again, and servers can
    /// go on meanwhile. Conversations that went on differently in both stores are named.
    Copy {
        /// The store to copy
        #[arg(long, value_name = "STORE")]
        from: String,
        /// The store to copy to
        #[arg(long, value_name = "STORE")]
        to: String,
    },
}

/// `docent serve`
#[derive(Debug, Args)]
pub struct Serve {
    /// Listen here [default: 127.0.0.1:8080]
    #[arg(long, short, value_name = "ADDR")]
    pub listen: Option<String>,
    /// Read the book's sources again this often: 30m, 6h, 1d [default: never]
    #[arg(long, value_name = "TIME", value_parser = period)]
    pub every: Option<Duration>,
}

/// `docent report`
#[derive(Debug, Args)]
pub struct Report {
    /// Where to write it
    #[arg(value_name = "FILE", default_value = "report.html")]
    pub file: PathBuf,
    /// How many days to look back
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub days: u32,
}

/// `docent key`
#[derive(Debug, Args)]
pub struct Key {
    /// Who gets it, for logs and limits
    #[arg(value_name = "NAME")]
    pub name: String,
    /// May also list conversations and see metrics
    #[arg(long)]
    pub admin: bool,
}

/// `docent eval`
#[derive(Debug, Args)]
pub struct Eval {
    /// A folder with corpus.jsonl[.gz], queries.jsonl and qrels.tsv
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Write the ranking as a TREC run
    #[arg(long, value_name = "FILE")]
    pub run: Option<PathBuf>,
    /// Say how often another TREC run has the same ten best
    #[arg(long, value_name = "FILE")]
    pub compare: Option<PathBuf>,
    /// Keep the index here and reuse it next time [default: a temporary folder]
    #[arg(long, value_name = "DIR")]
    pub index: Option<PathBuf>,
    /// Also ask these questions about other things, which should be abstained from
    #[arg(long, value_name = "FILE")]
    pub others: Option<PathBuf>,
    /// Write a page with plots and the worst cases
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Only those of these domains
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "others")]
    pub domains: Vec<String>,
}

/// `docent calibrate`
#[derive(Debug, Args)]
pub struct Calibrate {
    /// Folders with corpus.jsonl[.gz] and queries.jsonl: each book with questions it covers, and
    /// the domain among the other questions that is the book's own
    #[arg(value_name = "DIR[:DOMAIN]", required = true)]
    pub sets: Vec<String>,
    /// Questions about other things: a JSON line each, with `question` and `domain` [default: the
    /// unanswerable ones of the sets' qa.jsonl]
    #[arg(long, value_name = "FILE")]
    pub others: Option<PathBuf>,
    /// Keep the indexes here and reuse them next time [default: a temporary folder]
    #[arg(long, value_name = "DIR")]
    pub index: Option<PathBuf>,
    /// Write the coefficients here
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// `docent calibrate-verify`
#[derive(Debug, Args)]
pub struct CalibrateVerify {
    /// Claims, a JSON line each: `claim`, `label`, and `evidence_sentences` or the id of a document
    #[arg(value_name = "FILE", required = true)]
    pub claims: Vec<PathBuf>,
    /// The documents that claims name: a corpus.jsonl[.gz]
    #[arg(long, value_name = "FILE")]
    pub corpus: Option<PathBuf>,
    /// Write the coefficients here
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}
