// Add this `scripts` entry to your own Docusaurus configuration.
//
// Docusaurus copies the other keys of an entry to the script tag as attributes.
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
