import type { BuiltFiles } from "../detection/plan.ts";

/** Gives access to an application's files by their paths, without folders of installed packages. */
export function listedFiles(paths: readonly string[]): BuiltFiles {
  const known = new Set(paths);
  const below = (folder: string) => (folder === "." ? paths : paths.filter((path) => path.startsWith(`${folder}/`)));
  return {
    has: (path) => known.has(path),
    mayExist: (path) => known.has(path) || /^(?:node_modules|\.venv|bin)\//.test(path) || below(path).length > 0,
    folders: (path) => {
      const depth = path === "." ? 0 : path.split("/").length;
      const names = below(path).filter((each) => each.split("/").length > depth + 1);
      return [...new Set(names.map((each) => each.split("/")[depth] as string))].sort();
    },
    files: (path) => {
      const prefix = path === "." ? "" : `${path}/`;
      return below(path).flatMap((each) => (each.includes("/", prefix.length) ? [] : [each.slice(prefix.length)]));
    },
    pages: (path) => Math.min(2, below(path).filter((each) => /\.html?$/i.test(each)).length),
  };
}
