// The sidebar on narrow screens: a drawer over the page.
//
// Invariant: exactly one of drawer and page can be reached, by any means, while the
// screen is narrow; both while it is wide.

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
