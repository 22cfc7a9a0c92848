// Applies the light or dark theme before the first paint.
//
// This is deliberately a classic script in the head: a module would run after the page
// was painted once in the wrong colors.
//
// Invariant: `html[data-theme]` is always `light` or `dark`; the user's choice, which
// may also be `system`, is in `html[data-theme-choice]`.
(function () {
  "use strict";

  const KEY = "docent.theme";
  const CHOICES = ["system", "light", "dark"];
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");

  function stored() {
    try {
      return window.localStorage.getItem(KEY);
    } catch {
      return null; // Storage may be blocked; then the system's preference is used.
    }
  }

  function apply(choice) {
    const root = document.documentElement;
    const dark = choice === "dark" || (choice === "system" && prefersDark.matches);
    root.dataset.themeChoice = choice;
    root.dataset.theme = dark ? "dark" : "light";
  }

  function choice() {
    const value = document.documentElement.dataset.themeChoice || stored();
    return CHOICES.includes(value) ? value : "system";
  }

  window.docentTheme = {
    choice,
    /** Switches to the next theme and stores the choice. */
    next() {
      const following = CHOICES[(CHOICES.indexOf(choice()) + 1) % CHOICES.length];
      try {
        window.localStorage.setItem(KEY, following);
      } catch {
        // Storage is blocked; the choice lasts until the page is closed.
      }
      apply(following);
      return following;
    },
  };

  prefersDark.addEventListener("change", () => apply(choice()));
  apply(choice());
})();
