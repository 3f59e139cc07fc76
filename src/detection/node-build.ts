import { startScript } from "./node-start.ts";
import type { PackageJson } from "./package-json.ts";
import type { SourceTree } from "./source-tree.ts";

/** How an application is built: by a script of package.json, or by the program of a generator that it declares. */
export type NodeBuild = { readonly script: string } | { readonly command: readonly [string, ...string[]] };

// Static generators whose own setup writes no `build` script, or none at all. Their other scripts are named `docs:build` and alike.
const generators: readonly (readonly [name: string, command: (tree: SourceTree) => [string, ...string[]]])[] = [
  ["vitepress", (tree) => ["vitepress", "build", folderOf(tree, ".vitepress")]],
  ["vuepress", (tree) => ["vuepress", "build", folderOf(tree, ".vuepress")]],
  ["@11ty/eleventy", () => ["eleventy"]],
  ["@docusaurus/core", () => ["docusaurus", "build"]],
  ["astro", () => ["astro", "build"]],
  ["hexo", () => ["hexo", "generate"]],
];

/** Returns how the application is built; null if nothing builds it. A generator counts only if nothing else starts the application. */
export function nodeBuild(manifest: PackageJson, tree: SourceTree): NodeBuild | null {
  if (manifest.scripts["build"] !== undefined) return { script: "build" };
  const uses = (name: string) => ({ ...manifest.dependencies, ...manifest.devDependencies })[name] !== undefined;
  const found = generators.find(([name]) => uses(name));
  if (found === undefined || startScript(manifest) !== null) return null;
  const script = ["docs:build", "build:docs", "site:build"].find((name) => manifest.scripts[name] !== undefined);
  return script === undefined ? { command: found[1](tree) } : { script };
}

/** Returns the folder that holds the generator's own folder: the root, or one such as `docs`. */
function folderOf(tree: SourceTree, name: string): string {
  const inside = tree.paths.find((path) => path.startsWith(`${name}/`) || path.includes(`/${name}/`));
  return inside === undefined || inside.startsWith(name) ? "." : inside.slice(0, inside.indexOf(`/${name}/`));
}
