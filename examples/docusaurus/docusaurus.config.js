// The part of a Docusaurus configuration that adds Docent; keep the rest of yours.
//
// Docusaurus copies every other key of a `scripts` entry to the tag as an attribute.
export default {
  scripts: [
    {
      src: "https://docent.example.com/widget.js",
      defer: true,
      "data-title": "Ask the book",
      // "data-module": "ros2",
      // "data-position": "left",
    },
  ],
};
