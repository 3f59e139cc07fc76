import type { SourceTree } from "../detection/source-tree.ts";

/** Returns warnings about things that work but are rarely intended. */
export function sourceWarnings(tree: SourceTree): string[] {
  const hasModules = tree.paths.some((path) => path.startsWith("node_modules/"));
  return [
    ...(tree.has(".env")
      ? [
          ".env is in the repository, so everybody who can read the repository can read its values. `berth env set --from-file .env` seals them.",
        ]
      : []),
    ...(hasModules
      ? ["node_modules is in the repository. `git rm -r --cached node_modules` and .gitignore keep it out."]
      : []),
  ];
}
