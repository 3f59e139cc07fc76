import { readdir, readFile } from "node:fs/promises";
import { ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";

const folder = new URL("../../docs/", import.meta.url);
const prefix = "berth://docs/";

/** Returns the documentation's pages of this version, as MCP resources. */
export async function listPages() {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".md")).sort();
  return Promise.all(
    names.map(async (name) => {
      const [title = name] = (await readFile(new URL(name, folder), "utf8")).split("\n", 1);
      return { uri: prefix + name, name, title: title.replace(/^#+ /, ""), mimeType: "text/markdown" };
    }),
  );
}

/** Returns a page's text. Throws a `ProtocolError` if there is no such page; a URI never leads out of the folder. */
export async function readPage(uri: string) {
  const page = (await listPages()).find((one) => one.uri === uri);
  if (page === undefined) throw new ProtocolError(ProtocolErrorCode.InvalidParams, "There is no such page.");
  return { uri, mimeType: page.mimeType, text: await readFile(new URL(page.name, folder), "utf8") };
}
