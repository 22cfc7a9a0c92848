// Loads the widget, or only the search, and keeps it informed about the page. Renders nothing itself: the widget adds
// itself to the end of the page, outside of React.

import { useEffect } from "react";
import { useActivePluginAndVersion } from "@docusaurus/plugin-content-docs/client";
import useDocusaurusContext from "@docusaurus/useDocusaurusContext";
import { usePluginData } from "@docusaurus/useGlobalData";
import { describePage } from "../../tag";

export default function DocentWidget() {
  const settings = usePluginData("docusaurus-plugin-docent");
  const { currentLocale: locale } = useDocusaurusContext().i18n;
  const version = useActivePluginAndVersion()?.activeVersion?.name;
  useEffect(() => {
    if (settings.widget || settings.search) describePage(settings, { locale, version });
  }, [settings, locale, version]);
  return null;
}
