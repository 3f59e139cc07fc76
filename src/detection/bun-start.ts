import { nodeStart, startScript } from "./node-start.ts";
import type { PackageJson } from "./package-json.ts";
import type { BuiltFiles, Start } from "./plan.ts";

const names = ["index", "src/index", "server", "src/server", "app", "src/app"];
const entries = names.flatMap((name) => [`${name}.ts`, `${name}.tsx`, `${name}.js`]);

/** Like `nodeStart`, but Bun runs the sources directly, TypeScript included. */
export function bunStart(manifest: PackageJson, files: BuiltFiles): Start | null {
  return startScript(manifest) ?? entry(manifest, files) ?? nodeStart(manifest, files);
}

function entry({ module, main }: PackageJson, files: BuiltFiles): Start | null {
  const named = [module, main].flatMap((path) => (path === null ? [] : [path.replace(/^\.\//, "")]));
  const plain = named.filter((path) => /^[\w./@-]+$/.test(path) && !path.split("/").includes(".."));
  const found = [...plain, ...entries].find((path) => files.has(path));
  return found === undefined ? null : { how: "command", command: `bun run ${found}`, because: found };
}
