import ignore, { type Ignore } from "ignore";

/** What never belongs to a source, whatever the ignore files say. */
const never = [".git"];
/** Left out of folders that git does not look after: what package managers make, anew on every machine. */
const made = ["node_modules/", ".venv/", "__pycache__/", ".DS_Store"];

/** The folder to deploy, on a disk or in a browser. Paths begin at its top and have `/` between their parts. */
export interface SourceFolder {
  /** What lies directly in a folder, which is named `""` or with a `/` at its end. */
  list(inside: string): Promise<readonly { readonly name: string; readonly isFolder: boolean }[]>;
  /** The text of a file; empty when there is none. */
  text(path: string): Promise<string>;
}

/** The files of a folder without git's help; each folder's .gitignore counts for what lies in it. */
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

/** Those of the paths that .berthignore leaves. */
export function keptByBerthignore(paths: readonly string[], berthignore: string): string[] {
  const rules = ignore().add(berthignore);
  return paths.filter((path) => !rules.ignores(path));
}
