import { readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import type { Handlers } from "../context.ts";
import type { Result } from "../../contract/routes.ts";

export const templates: Handlers<"templates"> = {
  async list() {
    return { templates: await (read ??= Promise.all(Object.keys(known).map(readTemplate))) };
  },
};

type Template = Result<"templates.list">["templates"][number];

const folder = join(import.meta.dirname, "../../../templates");

/** By the name of the folder with their files, in the order in which they are shown. */
const known: Readonly<Record<string, readonly [title: string, summary: string, needs?: "database"]>> = {
  node: ["Node.js", "A server without packages"],
  nextjs: ["Next.js", "A page of notes, kept in PostgreSQL", "database"],
  python: ["Python", "A server with Flask"],
  django: ["Django", "A page of notes, kept in PostgreSQL", "database"],
  go: ["Go", "A server of the standard library"],
  rust: ["Rust", "A server of the standard library"],
  java: ["Java", "A server of the JDK, built by Maven"],
  php: ["PHP", "A page"],
  ruby: ["Ruby", "A server with WEBrick"],
  static: ["Static files", "A page and its style, without a server of its own"],
};

let read: Promise<readonly Template[]> | undefined;

async function readTemplate(name: string): Promise<Template> {
  const [title = "", summary = "", needs] = known[name] ?? [];
  const own = join(folder, name);
  const found = (await readdir(own, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
  const paths = found.map((entry) => relative(own, join(entry.parentPath, entry.name))).toSorted();
  const files = await Promise.all(paths.map(async (path) => ({ path, text: await readFile(join(own, path), "utf8") })));
  return { name, title, summary: `${summary}.`, has_database: needs === "database", files };
}
