// The button in the navigation bar that opens Docent's search.

import { translate } from "@docusaurus/Translate";
import useIsBrowser from "@docusaurus/useIsBrowser";
import { usePluginData } from "@docusaurus/useGlobalData";
import { openSearch } from "../../tag";
import styles from "./styles.module.css";

export default function SearchBar() {
  const { search } = usePluginData("docusaurus-plugin-docent");
  const isMac = useIsBrowser() && /Mac|iPhone|iPad/.test(navigator.platform);
  if (!search) return null;
  const label = translate({ id: "theme.SearchBar.label", message: "Search" });
  return (
    <button type="button" className={styles.search} aria-haspopup="dialog" aria-keyshortcuts="Control+K Meta+K" onClick={openSearch}>
      <svg viewBox="0 0 20 20" width="18" height="18" fill="none" stroke="currentColor" strokeWidth="2" strokeLinecap="round" aria-hidden="true">
        <circle cx="8.5" cy="8.5" r="5.5" />
        <path d="m13 13 4.5 4.5" />
      </svg>
      <span>{label}</span>
      <kbd aria-hidden="true">{isMac ? "⌘K" : "Ctrl K"}</kbd>
    </button>
  );
}
