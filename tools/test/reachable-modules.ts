import { existsSync, readFileSync } from "node:fs";
import { join, dirname } from "node:path";

const importPattern =
  /^(?:import|export)\s(?!type\b)[^;]*?from\s+"([^"]+)"|^import\s+"([^"]+)"|\bimport\("([^"]+)"\)/gm;
const known = new Map<string, readonly string[]>();

/** Returns all modules that a file loads, directly or indirectly: paths relative to the current folder, and specifiers of packages. */
export function reachableModules(file: string, found: Set<string> = new Set()): ReadonlySet<string> {
  for (const module of importsOf(file)) {
    if (found.has(module)) continue;
    found.add(module);
    if (existsSync(module)) reachableModules(module, found);
  }
  return found;
}

function importsOf(file: string): readonly string[] {
  const before = known.get(file);
  if (before !== undefined) return before;
  const matches = [...readFileSync(file, "utf8").matchAll(importPattern)];
  const specifiers = matches.map((match) => match[1] ?? match[2] ?? match[3] ?? "");
  const modules = specifiers.map((each) => (each.startsWith(".") ? join(dirname(file), each) : each));
  known.set(file, modules);
  return modules;
}
