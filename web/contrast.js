// Chooses readable colors next to those that the author has set.

/** The color of text on `accent` and of links on `surface`; both are computed colors, such as `rgb(15, 106, 91)`. */
export function readableColors(accent, surface) {
  const [ground, page] = [luminance(accent), luminance(surface) ?? 1];
  return {
    onAccent: ground === null || ground < 0.3 ? "#ffffff" : "#10201c",
    link: ground === null || contrast(ground, page) < 4.5 ? "var(--ink)" : "var(--accent)",
  };
}

/** The relative luminance as WCAG defines it; null if the color is not written as `rgb(…)`. */
function luminance(color) {
  const parts = (color.match(/^rgba?\(([^)]+)\)/)?.[1] ?? "").split(/[ ,/]+/).map(Number);
  if (!parts.slice(0, 3).every(Number.isFinite) || parts.length < 3) return null;
  const [red, green, blue] = parts.map((value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one, other) {
  return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
}
