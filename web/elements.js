// Creates elements, icons and links.
//
// Invariant: strings become text, never markup. Only absolute http and https URLs
// become links.

let opensHere = () => false;

/**
 * Creates an element with attributes and children. An attribute whose value is a function
 * becomes an event listener; attributes and children that are `null`, `undefined` or
 * `false` are left out.
 */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(attribute, value);
    else made.setAttribute(attribute, value === true ? "" : String(value));
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** An icon from the list below; it is decorative, so it has no accessible name. */
export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("focusable", "false");
  for (const drawing of DRAWINGS[name]) {
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", drawing);
    svg.append(path);
  }
  return svg;
}

/** A button with an icon. Without `text`, the label is used for screen readers and as tooltip. */
export function iconButton(name, label, attributes = {}, text = null) {
  const named = text ? {} : { "aria-label": label, title: label };
  return element("button", { type: "button", ...named, ...attributes }, icon(name), text && element("span", {}, text));
}

/** The address as a URL if it is http or https, else null. */
export function followable(address) {
  try {
    const url = new URL(address);
    return url.protocol === "https:" || url.protocol === "http:" ? url : null;
  } catch {
    return null;
  }
}

/** Decides which URLs open in this tab. Unless this is called, links open in a new tab. */
export function openInThisTab(decide) {
  opensHere = decide;
}

/** A link to the book, or plain text if the address cannot be opened. */
export function bookLink(address, attributes, ...children) {
  const url = followable(address);
  if (!url) return element("span", attributes, ...children);
  return element("a", { ...attributes, href: address, target: !opensHere(url) && "_blank", rel: "noopener" }, ...children);
}

/** Whether a click follows a link in this tab, and not, with a key held, in another one. */
export function isPlain(event) {
  return !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);
}

/** The focused element in the document or shadow root that contains `node`. */
export function focusedBeside(node) {
  return node.getRootNode().activeElement;
}

/** The address of a passage for display: without the scheme and the text fragment. */
export function readableAddress(address) {
  const bare = String(address ?? "").replace(/:~:.*$/, "").replace(/#$/, "").replace(/^(https?|file):\/\//, "");
  try {
    return decodeURI(bare);
  } catch {
    return bare;
  }
}

/** Makes an element scrollable by keyboard while its content overflows. */
export function scrollable(frame, label) {
  new ResizeObserver(() => {
    const overflows = frame.scrollWidth > frame.clientWidth || frame.scrollHeight > frame.clientHeight;
    if (overflows) {
      frame.tabIndex = 0;
      frame.setAttribute("role", "group");
      frame.setAttribute("aria-label", label);
    } else {
      for (const attribute of ["tabindex", "role", "aria-label"]) frame.removeAttribute(attribute);
    }
  }).observe(frame);
}

const DRAWINGS = {
  menu: ["M4 7h16", "M4 12h16", "M4 17h10"],
  plus: ["M12 5v14", "M5 12h14"],
  close: ["M6 6l12 12", "M18 6L6 18"],
  more: ["M5 12h.01", "M12 12h.01", "M19 12h.01"],
  system: ["M4 5h16v11H4z", "M9 20h6", "M12 16v4"],
  light: ["M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8z", "M12 2v2", "M12 20v2", "M2 12h2", "M20 12h2", "M5 5l1.4 1.4", "M17.6 17.6L19 19", "M5 19l1.4-1.4", "M17.6 6.4L19 5"],
  dark: ["M20 14.5A8 8 0 1 1 9.5 4a6.5 6.5 0 0 0 10.5 10.5z"],
  copy: ["M9 9h11v11H9z", "M15 9V4H4v11h5"],
  check: ["M5 12.5l4.5 4.5L19 7.5"],
  up: ["M7 11v9H4v-9z", "M7 11l4-8a2.5 2.5 0 0 1 2.5 2.5V9h5a2 2 0 0 1 2 2.3l-1.2 7A2 2 0 0 1 17.3 20H7"],
  down: ["M7 13V4H4v9z", "M7 13l4 8a2.5 2.5 0 0 0 2.5-2.5V15h5a2 2 0 0 0 2-2.3l-1.2-7A2 2 0 0 0 17.3 4H7"],
  outside: ["M14 4h6v6", "M20 4l-9 9", "M18 14v6H4V6h6"],
  book: ["M12 6.5C10 5 7 4.5 3.5 4.5v13.5c3.5 0 6.5.5 8.5 2 2-1.5 5-2 8.5-2V4.5C17 4.5 14 5 12 6.5z", "M12 6.5V20"],
  absent: ["M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18z", "M8 12h8"],
  warning: ["M12 4L2.5 20h19z", "M12 10v4.5", "M12 17.3h.01"],
  unplugged: ["M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18z", "M12 8v5", "M12 16h.01"],
  unlink: ["M4 4l16 16", "M13.5 6.7l.8-.9a4 4 0 0 1 5.7 5.6l-2 2", "M10.5 17.3l-.8.9a4 4 0 0 1-5.7-5.6l2-2"],
  link: ["M10 14a4 4 0 0 0 6 .4l3-3a4 4 0 0 0-5.7-5.7l-1 1", "M14 10a4 4 0 0 0-6-.4l-3 3a4 4 0 0 0 5.7 5.7l1-1"],
  rename: ["M4 20l1-4L16 5l3 3L8 19z", "M14 7l3 3"],
  remove: ["M5 7h14", "M10 7V4h4v3", "M7 7l1 13h8l1-13"],
  download: ["M12 4v11", "M7.5 11l4.5 4.5 4.5-4.5", "M5 20h14"],
  search: ["M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13z", "M15.5 15.5L20 20"],
  recent: ["M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18z", "M12 7v5l3.5 2"],
  send: ["M12 19V5", "M5.5 11.5L12 5l6.5 6.5"],
  stop: ["M7.5 7.5h9v9h-9z"],
  retry: ["M20 11a8 8 0 1 0-2.3 6.3", "M20 5v6h-6"],
};
