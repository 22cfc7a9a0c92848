// Light or dark, decided before the first paint.
//
// A classic script in the head on purpose: a module would run after the page was
// painted once in the wrong colours.
//
// Invariant: `html[data-theme]` is always `light` or `dark`; the reader's choice,
// which may also be `system`, is in `html[data-theme-choice]`.
(function () {
  "use strict";

  const KEY = "docent.theme";
  const CHOICES = ["system", "light", "dark"];
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");

  function stored() {
    try {
      return window.localStorage.getItem(KEY);
    } catch {
      return null; // Storage may be forbidden; the system's preference is a fine default.
    }
  }

  function apply(choice) {
    const root = document.documentElement;
    const dark = choice === "dark" || (choice === "system" && prefersDark.matches);
    root.dataset.themeChoice = choice;
    root.dataset.theme = dark ? "dark" : "light";
    root.dispatchEvent(new CustomEvent("docent-theme", { detail: choice }));
  }

  function choice() {
    const value = document.documentElement.dataset.themeChoice || stored();
    return CHOICES.includes(value) ? value : "system";
  }

  window.docentTheme = {
    choice,
    /** Moves on to the next choice and remembers it. */
    next() {
      const following = CHOICES[(CHOICES.indexOf(choice()) + 1) % CHOICES.length];
      try {
        window.localStorage.setItem(KEY, following);
      } catch {
        // Then the choice lasts as long as the page.
      }
      apply(following);
      return following;
    },
  };

  prefersDark.addEventListener("change", () => apply(choice()));
  apply(choice());
})();
