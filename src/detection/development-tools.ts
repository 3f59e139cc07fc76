import { startScript } from "./node-start.ts";
import type { PackageJson } from "./package-json.ts";

/** Returns the development dependencies whose programs the application's commands run after the build, such as a release command's. */
export function developmentTools(manifest: PackageJson, commands: readonly string[]): string[] {
  const start = startScript(manifest);
  const words = new Set([...commands, ...(start?.how === "command" ? [start.command] : [])].flatMap(wordsIn));
  const scripts = new Map(Object.entries(manifest.scripts));
  // Scripts may run scripts; each is looked up once.
  for (const word of words) for (const inner of wordsIn(scripts.get(word) ?? "")) words.add(inner);
  return Object.keys(manifest.devDependencies).filter((name) => programsOf(name).some((program) => words.has(program)));
}

const wordsIn = (command: string): string[] =>
  command
    .split(/[\s=;&|()'"`]+/)
    .map((word) => word.replace(/^(?:\.\/)?node_modules\/(?:\.bin\/)?/, ""))
    .filter(Boolean);

/** Returns the programs of a package: those of its own name, with or without the usual affixes. */
function programsOf(name: string): string[] {
  const [own = "", scope = ""] = name.split("/").toReversed();
  return [name, own, own.replace(/-cli$/, ""), ...(own === "cli" ? [scope.slice(1)] : []), ...(named.get(name) ?? [])];
}

const named = new Map([
  ["typescript", ["tsc"]],
  ["ts-node", ["ts-node/register"]],
]);
