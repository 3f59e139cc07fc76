import ignore, { type Ignore } from "ignore";

/** Never part of a source, whatever the ignore files say. */
const never = [".git"];
/** Excluded from folders outside git: what package managers recreate on every machine. */
const made = ["node_modules/", ".venv/", "__pycache__/", ".DS_Store"];

/** The folder to deploy, on disk or in a browser. Paths are relative to it and separated by `/`. */
export interface SourceFolder {
  /** Lists a folder's direct entries. `inside` is `""` for the top folder, otherwise a path that ends with `/`. */
  list(inside: string): Promise<readonly { readonly name: string; readonly isFolder: boolean }[]>;
  /** Returns a file's text; empty when the file does not exist. */
  text(path: string): Promise<string>;
}

/** Lists the files of a folder without using git. Each folder's .gitignore applies to its content. */
export async function walkSource(folder: SourceFolder): Promise<string[]> {
  const found: string[] = [];
  const visit = async (inside: string, rules: readonly { at: string; own: Ignore }[]): Promise<void> => {
    const own = ignore().add(await folder.text(`${inside}.gitignore`));
    const all = [...rules, { at: inside, own }];
    const isIgnored = (path: string) => all.some(({ at, own: each }) => each.ignores(path.slice(at.length)));
    for (const { name, isFolder } of await folder.list(inside)) {
      const path = `${inside}${name}`;
      if (never.includes(name) || isIgnored(isFolder ? `${path}/` : path)) continue;
      if (isFolder) await visit(`${path}/`, all);
      else found.push(path);
    }
  };
  await visit("", [{ at: "", own: ignore().add(made) }]);
  return found;
}

/** Returns the paths that .berthignore does not exclude. */
export function keptByBerthignore(paths: readonly string[], berthignore: string): string[] {
  const rules = ignore().add(berthignore);
  return paths.filter((path) => !rules.ignores(path));
}
