//! PDFs, ordinary and malicious, read by the real binary.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use crate::http::Site;
use crate::support::{Docent, wait_until};

/// A PDF with one page of this content.
fn pdf(filters: &str, content: &[u8]) -> Vec<u8> {
    let mut file = b"%PDF-1.7\n".to_vec();
    let mut offsets = Vec::new();
    let objects: [(&str, &[u8]); 4] = [
        ("<< /Type /Catalog /Pages 2 0 R >>", b""),
        ("<< /Type /Pages /Kids [3 0 R] /Count 1 >>", b""),
        (
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 \
             << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
            b"",
        ),
        (&format!("<< /Length {} {filters} >>", content.len()), content),
    ];
    for (number, (dictionary, stream)) in objects.iter().enumerate() {
        offsets.push(file.len());
        write!(file, "{} 0 obj\n{dictionary}\n", number + 1).unwrap();
        if !stream.is_empty() {
            file.extend_from_slice(b"stream\n");
            file.extend_from_slice(stream);
            file.extend_from_slice(b"\nendstream\n");
        }
        file.extend_from_slice(b"endobj\n");
    }
    let start = file.len();
    writeln!(file, "xref\n0 {}\n0000000000 65535 f ", offsets.len() + 1).unwrap();
    for offset in &offsets {
        writeln!(file, "{offset:010} 00000 n ").unwrap();
    }
    writeln!(file, "trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF", offsets.len() + 1)
        .unwrap();
    file
}

fn text(words: &str) -> Vec<u8> {
    pdf("", format!("BT /F1 12 Tf 72 700 Td ({words}) Tj ET").as_bytes())
}

/// A few kilobytes that decompress to `megabytes` of blanks.
pub fn bomb(megabytes: usize) -> Vec<u8> {
    let mut outer = ZlibEncoder::new(Vec::new(), Compression::best());
    let mut inner = ZlibEncoder::new(&mut outer, Compression::fast());
    let blanks = vec![b' '; 1 << 20];
    for _ in 0..megabytes {
        inner.write_all(&blanks).unwrap();
    }
    inner.finish().unwrap();
    pdf("/Filter [/FlateDecode /FlateDecode]", &outer.finish().unwrap())
}

fn write(docent: &Docent, name: &str, bytes: &[u8]) {
    docent.write(name, "");
    std::fs::write(docent.home.path().join(name), bytes).unwrap();
}

#[test]
fn many_ordinary_pdfs_are_ingested() {
    let docent = Docent::without_vectors();
    for number in 0..20 {
        write(&docent, &format!("book/p{number}.pdf"), &text(&format!("Pump {number} moves water.")));
    }
    let report = docent.json(&["ingest", "book"]);
    assert_eq!((&report["pages"]["added"], &report["warnings"]), (&20.into(), &serde_json::json!([])));
    let found = docent.json(&["search", "pump 17", "--top-k", "1"]);
    assert_eq!(found["chunks"][0]["content"], "Pump 17 moves water.");
}

#[cfg(target_os = "linux")]
#[test]
fn a_pdf_that_needs_gigabytes_is_skipped_with_a_warning() {
    let docent = Docent::without_vectors();
    let bomb = bomb(2048);
    assert!(bomb.len() < 200_000, "{} bytes", bomb.len());
    for name in ["book/bomb.pdf", "book/bomb2.pdf"] {
        write(&docent, name, &bomb);
    }
    write(&docent, "book/good.pdf", &text("A pump moves water."));
    docent.write("book/valves.md", "# Valves\n\nA valve opens at three bar.\n");
    docent.write(
        "docent.toml",
        "[[sources]]\nlocation = \"book\"\n\n[serve]\nevery = \"1h\"\nrequests_per_minute = 0\n",
    );
    // The server ingests the book before it starts.
    let mut served = docent.serve();
    let said = served.said();
    assert!(said.contains("2 times: needs more than 1024 MB of memory"), "{said}");
    assert!(served.stop());
    let (run, peak) = docent.run_watched(&["ingest", "--json"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(peak < 500, "{peak} MB");
    assert_eq!(docent.json(&["status"])["pages"], 2);
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_answers_while_a_refresh_reads_a_pdf_that_needs_gigabytes() {
    let docent = Docent::without_vectors();
    docent.write("book/valves.md", "# Valves\n\nA valve opens at three bar.\n");
    docent.write(
        "docent.toml",
        "[[sources]]\nlocation = \"book\"\n\n[serve]\nevery = \"1h\"\nrequests_per_minute = 0\n",
    );
    docent.ok(&["ingest"]);
    write(&docent, "book/bomb.pdf", &bomb(2048));
    docent.write("book/pumps.md", "# Pumps\n\nA pump moves water.\n");
    // A server that has a book refreshes it as soon as it runs.
    let site = Site::new(&docent);
    let ask = |query: &str| site.post("/api/v1/ask", serde_json::json!({ "query": query }));
    wait_until(|| {
        let (status, answer) = ask("When does a valve open?");
        assert_eq!((status, &answer["grounded"]), (200, &true.into()), "{answer}");
        site.get("/api/v1/status").1["pages"] == 2
    });
    assert_eq!(ask("What does a pump move?").1["grounded"], true);
}
