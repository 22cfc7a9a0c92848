// The dialog that asks for the API key.
//
// The chat page loads this script when the server asks for a key.
//
// Invariant: several requests may be rejected at once, but the user is asked only once.

import { openPages, useKey } from "./api.js";

let asking = null;

/** Resolves to whether the user gave a key that was accepted. `decide` shows a dialog and resolves to the choice. */
export function askForKey(decide) {
  asking ??= (async () => {
    try {
      return await keyAccepted(decide);
    } finally {
      asking = null;
    }
  })();
  return asking;
}

/** Asks until the key is accepted or the user cancels. */
async function keyAccepted(decide) {
  const [dialog, input, problem, cancel] = ["key", "key-value", "key-problem", "key-cancel"].map((id) => document.getElementById(id));
  cancel.onclick = () => dialog.close("cancel");
  say("");
  for (;;) {
    const given = (await decide(dialog)) && input.value.trim();
    input.value = "";
    if (!given) return false;
    useKey(given);
    try {
      await openPages();
      return true;
    } catch (refused) {
      if (refused.status === 401) useKey(null);
      say(refused.status === 401 ? "That key was not accepted. Check it and try again." : refused.message);
    }
  }

  function say(text) {
    problem.textContent = text;
    problem.hidden = !text;
    input.setAttribute("aria-invalid", String(Boolean(text)));
  }
}
