import type { Step } from "./plan.ts";
import type { Declared } from "./python-dependencies.ts";
import type { SourceTree } from "./source-tree.ts";

/** A static site that a generator from the Python package index builds. */
export interface PythonSite {
  readonly name: string;
  /** Packages to install if the source declares none. */
  readonly packages: readonly string[];
  readonly command: readonly [string, ...string[]];
  /** The folder that the command fills. */
  readonly folder: string;
}

const hugoFiles = ["hugo.toml", "hugo.yaml", "hugo.json", "config/_default/hugo.toml", "config/_default/hugo.yaml"];

/** Returns the site that the source describes; null if there is none. */
export function pythonSite(tree: SourceTree, declared: Declared): PythonSite | null {
  const mkdocs = mkdocsFile(tree);
  if (mkdocs !== undefined) return mkdocsSite(tree.text(mkdocs) ?? "");
  if (hugoFiles.some((file) => tree.has(file)))
    return { name: "Hugo", packages: ["hugo"], command: ["hugo", "--gc", "--minify"], folder: "public" };
  const conf = tree.paths.find((path) => /^(?:[\w-]+\/){0,2}conf\.py$/.test(path));
  if (conf !== undefined && declared.has("sphinx")) {
    const source = conf.slice(0, -"/conf.py".length) || ".";
    return { name: "Sphinx", packages: [], command: ["sphinx-build", "-b", "html", source, "_site"], folder: "_site" };
  }
  if (tree.has("pelicanconf.py") && declared.has("pelican")) {
    const settings = tree.has("publishconf.py") ? "publishconf.py" : "pelicanconf.py";
    const command = ["pelican", "content", "--settings", settings, "--output", "output"] as const;
    return { name: "Pelican", packages: [], command: [...command], folder: "output" };
  }
  return null;
}

/** Returns whether the source is a site by its files alone, without a list of dependencies. */
export function hasSiteFile(tree: SourceTree): boolean {
  return mkdocsFile(tree) !== undefined || hugoFiles.some((file) => tree.has(file));
}

const mkdocsFile = (tree: SourceTree) => ["mkdocs.yml", "mkdocs.yaml"].find((file) => tree.has(file));

function mkdocsSite(settings: string): PythonSite {
  const [, folder = "site"] = /^site_dir:[ \t]*["']?([\w./-]+)/m.exec(settings) ?? [];
  const theme = /^theme:[ \t]*(?:\n(?:[ \t].*\n)*?[ \t]+name:[ \t]*)?["']?material\b/m.test(settings);
  return {
    ...{ name: "MkDocs", packages: [theme ? "mkdocs-material" : "mkdocs"] },
    ...{ command: ["mkdocs", "build", "--site-dir", folder], folder },
  };
}

export function siteStep({ name, command }: PythonSite, home: string): Step {
  const [program, ...args] = command;
  return {
    ...{ title: `Building the ${name} site: ${command.join(" ")}`, stage: "build", env: {}, tool: "script" },
    ...{ args: [`${home}/.venv/bin/${program}`, ...args], otherwise: "build_script_failed" },
  };
}
