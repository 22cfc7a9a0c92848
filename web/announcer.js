// Announces text to screen readers.

const READ_AFTER = 8000;

/** A function that announces text in `log`. The text is removed later, so that screen readers do not find the answer twice. */
export function announcer(log) {
  return (text) => {
    const words = document.createElement("p");
    words.append(text);
    log.append(words);
    setTimeout(() => words.remove(), READ_AFTER);
  };
}
