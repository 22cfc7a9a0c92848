// The sidebar on narrow screens: a drawer above the page.
//
// Invariant: on a narrow screen, either the drawer or the page is interactive, never both;
// on a wide screen, both are.

const NARROW = window.matchMedia("(max-width: 56rem)");

export class Sidebar {
  constructor() {
    this.root = document.getElementById("sidebar");
    this.page = document.getElementById("page");
    this.backdrop = document.getElementById("backdrop");
    this.openButton = document.getElementById("open-sidebar");
    this.closeButton = document.getElementById("close-sidebar");
    this.isOpen = false;

    this.openButton.addEventListener("click", () => this.#set(true));
    this.closeButton.addEventListener("click", () => this.close());
    this.backdrop.addEventListener("click", () => this.close());
    this.root.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.isOpen) this.close();
    });
    NARROW.addEventListener("change", () => this.#set(false));
    this.#set(false);
  }

  close() {
    if (!this.isOpen) return;
    this.#set(false);
    this.openButton.focus();
  }

  #set(open) {
    const narrow = NARROW.matches;
    this.isOpen = open && narrow;
    this.root.classList.toggle("open", this.isOpen);
    this.root.inert = narrow && !this.isOpen;
    this.page.inert = this.isOpen;
    this.backdrop.hidden = !this.isOpen;
    this.openButton.setAttribute("aria-expanded", String(this.isOpen));
    if (this.isOpen) this.closeButton.focus();
  }
}
