import type { Start } from "../detection/plan.ts";

export const siteServerFile = new URL("./static-server.mjs", import.meta.url);

/** The server's file name when it is placed beside the whole application. */
export const besideApp = ".berth-static-server.mjs";

/** Returns the command that serves a site: from `site/` with the server beside it, or from its folder in the whole application. */
export function siteCommand(start: Extract<Start, { how: "static" }>, beside?: typeof besideApp): string {
  const fallback = start.fallback === "index" ? " --fallback=index.html" : "";
  const folder = beside === undefined ? "site" : start.folder;
  return `node /app/${beside ?? "static-server.mjs"} /app/${folder}${fallback}`;
}
