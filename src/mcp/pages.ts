import { readdir, readFile } from "node:fs/promises";

export interface DocsPage {
  /** Its file without the ending. */
  readonly name: string;
  readonly title: string;
  /** Its first sentence. */
  readonly lead: string;
  /** As written, in Markdown. */
  readonly text: string;
}

const folder = new URL("../../docs/", import.meta.url);
let read: Promise<readonly DocsPage[]> | undefined;

/** Returns the documentation's pages of this version, by title. They are read once. */
export function readPages(): Promise<readonly DocsPage[]> {
  return (read ??= readAll());
}

async function readAll(): Promise<readonly DocsPage[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".md"));
  const pages = names.map(async (name) => pageOf(name.slice(0, -3), await readFile(new URL(name, folder), "utf8")));
  return (await Promise.all(pages)).sort((a, b) => a.title.localeCompare(b.title, "en"));
}

function pageOf(name: string, text: string): DocsPage {
  const [, title = name] = /^# (.+)$/m.exec(text) ?? [];
  const afterTitle = text.slice(text.indexOf(`# ${title}`) + title.length + 2);
  const paragraph = afterTitle.split(/\n\s*\n/).find((part) => /^\s*[\p{L}`*[]/u.test(part) && !part.includes("```"));
  const plain = (paragraph ?? title)
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll("**", "")
    .replaceAll(/\s+/g, " ")
    .trim();
  return { name, title, lead: /^.*?[.:](?= [\p{Lu}`]|$)/u.exec(plain)?.[0].replace(/:$/, ".") ?? plain, text };
}
