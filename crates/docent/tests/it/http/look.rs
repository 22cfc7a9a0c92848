//! `[chat]`: looks and wording of the chat page.

use reqwest::Method;

use super::Site;
use crate::support::Docent;

#[test]
fn words_colors_and_logo_are_those_of_the_settings() {
    let docent = Docent::without_vectors();
    docent.write("docent.toml", "[chat]\nlogo = \"look/logo.svg\"\naccent = \"#7a2048\"\nheading = \"Ask the <mill>\"\nplaceholder = \"Your question\"\n");
    docent.write("look/logo.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"/>");
    let site = Site::of(docent);
    let page = site.get("/").1;
    let page = page.as_str().unwrap();
    for words in ["Ask the &lt;mill&gt;", "placeholder=\"Your question\"", "src=\"assets/logo\""] {
        assert!(page.contains(words), "{words}");
    }
    let style = site.get("/assets/look.css").1;
    assert!(style.as_str().unwrap().starts_with(":root{--accent:#7a2048;"), "{style}");
    let logo = site.send(Method::GET, "/assets/logo", None, &[]);
    assert_eq!(logo.headers()["content-type"], "image/svg+xml");
    assert!(logo.headers()["content-security-policy"].to_str().unwrap().contains("sandbox"));
}

#[test]
fn wrong_settings_are_refused() {
    let docent = Docent::without_vectors();
    for (setting, message) in [
        ("accent = \"red\"", "chat.accent: invalid color `red`"),
        ("logo = \"nothing.png\"", "chat.logo: cannot use"),
        ("logo = \"docent.toml\"", "chat.logo: cannot use"),
        ("color = \"red\"", "color"),
    ] {
        docent.write("docent.toml", &format!("[chat]\n{setting}\n"));
        let run = docent.run(&["status"]);
        assert_eq!(run.status, 3, "{setting}: {}", run.stderr);
        assert!(run.stderr.contains(message), "{setting}: {}", run.stderr);
    }
}
