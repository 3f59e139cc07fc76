import { readdir, rm } from "node:fs/promises";
import { posix } from "node:path";

interface Rule {
  readonly pattern: RegExp;
  readonly keeps: boolean;
}

/**
 * Parses a .dockerignore. The returned function tells whether a path is excluded, by itself or by a folder above it; the last matching rule
 * decides.
 */
export function readDockerignore(text: string): (path: string) => boolean {
  const rules = text
    .replace(/^\uFEFF/, "")
    .split(/\r?\n/)
    .flatMap(readRule);
  return (path) => {
    const parts = path.split("/");
    const above = parts.map((_, index) => parts.slice(0, index + 1).join("/"));
    let ignored = false;
    for (const { pattern, keeps } of rules) if (above.some((each) => pattern.test(each))) ignored = !keeps;
    return ignored;
  };
}

function readRule(line: string): Rule[] {
  if (line.startsWith("#")) return [];
  const text = line.trim();
  const keeps = text.startsWith("!");
  const path = posix.normalize(keeps ? text.slice(1).trim() : text).replace(/^\/+|\/+$/g, "");
  if (text === "" || text === "!" || path === "" || path === ".") return [];
  return [{ pattern: new RegExp(`^${globOf(path)}$`), keeps }];
}

/** Translates a pattern to a regular expression: Go's `filepath.Match` plus `**`, as Docker documents it. */
function globOf(path: string): string {
  const tokens = path.matchAll(/\*\*\/?|\*|\?|\[(?:\\.|[^\]\\])+\]|\\.|[^]/gu);
  return [...tokens]
    .map(([token]) => {
      if (token === "**/") return "(?:[^]*/)?";
      if (token === "**") return "[^]*";
      if (token === "*") return "[^/]*";
      if (token === "?") return "[^/]";
      if (token.startsWith("[") && token.length > 1) return token;
      return (token.startsWith("\\") && token.length > 1 ? token.slice(1) : token).replace(
        /[$()*+.?[\\\]^{|}/]/g,
        "\\$&",
      );
    })
    .join("");
}

const slash = Buffer.from("/");

/** Removes what `ignores` matches below `root`. An ignored folder stays if a rule keeps something in it. */
export async function removeIgnored(root: string, ignores: (path: string) => boolean): Promise<void> {
  const walk = async (place: Buffer, folder: string): Promise<boolean> => {
    let isEmpty = true;
    for (const entry of await readdir(place, { withFileTypes: true, encoding: "buffer" })) {
      const path = `${folder}${entry.name.toString("utf8")}`;
      const file = Buffer.concat([place, slash, entry.name]);
      const isRemoved = entry.isDirectory() ? (await walk(file, `${path}/`)) && ignores(path) : ignores(path);
      if (isRemoved) await rm(file, { recursive: true });
      else isEmpty = false;
    }
    return isEmpty;
  };
  await walk(Buffer.from(root), "");
}
