import { existsSync } from "node:fs";
import { builtinModules, registerHooks } from "node:module";

import { importRules } from "./import-rules.ts";
import { report } from "./report.ts";
import { trackedFiles } from "./tracked-files.ts";

/**
 * Checks the import rules in the current folder. dependency-cruiser reads TypeScript below 7 only and silently visits nothing
 * otherwise: it is given version 6 under its usual name, and too few visited modules are a failure.
 */
export async function checkImports(): Promise<readonly string[]> {
  const { modules, violations } = await cruiseAll();
  const expected = (await trackedFiles(["src"])).filter((file) => /\.(?:ts|tsx|mjs)$/.test(file));
  const visited = new Set(modules.map((module) => module.source));
  const unseen = expected.filter((file) => !visited.has(file));
  return [...violations.map(describe), ...unseen.map((file) => `${file}: dependency-cruiser did not visit it`)];
}

interface Violation {
  readonly rule: { readonly name: string };
  readonly from: string;
  readonly to: string;
}

interface Cruised {
  readonly modules: readonly { readonly source: string }[];
  readonly violations: readonly Violation[];
}

async function cruiseAll(): Promise<Cruised> {
  registerHooks({
    resolve: (specifier, context, next) => next(specifier.replace(/^typescript(?=$|\/)/, "typescript6"), context),
  });
  const { cruise } = await import("dependency-cruiser");
  const forbidden = importRules.map((rule) => ({ ...rule, severity: "error" as const }));
  const folders = ["src", "test", "tools"].filter((folder) => existsSync(folder));
  // Without these it does not read the `exports` of packages.
  const resolving = { exportsFields: ["exports"], conditionNames: ["import", "node", "default", "types"] };
  const options = {
    ruleSet: { forbidden: forbidden as never },
    validate: true,
    tsPreCompilationDeps: true,
    doNotFollow: { path: "node_modules" },
    preserveSymlinks: true,
    builtInModules: {
      override: [...builtinModules],
      add: ["node:sqlite", "node:test", "node:test/reporters", "node:sea"],
    },
  };
  const result = await cruise(folders, options, resolving);
  const output = result.output as unknown as { modules: Cruised["modules"]; summary: Pick<Cruised, "violations"> };
  return { modules: output.modules, violations: output.summary.violations };
}

function describe(violation: Violation): string {
  const rule = importRules.find(({ name }) => name === violation.rule.name);
  return `${violation.from} -> ${violation.to}: ${violation.rule.name} (${rule?.comment ?? ""})`;
}

if (import.meta.main) report(await checkImports());
