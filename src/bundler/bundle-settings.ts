import { fileURLToPath } from "node:url";
import tailwind from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import type { InlineConfig, Plugin } from "vite";
import { needsAllProjects } from "../contract/access.ts";
import { errors } from "../contract/errors.ts";
import { routes } from "../contract/routes.ts";
import type { Row } from "../contract/table.ts";

/** Returns the settings that bundle the dashboard for current browsers, with nothing inlined that the Content-Security-Policy would block. */
export function bundleSettings(): InlineConfig {
  return {
    root: fileURLToPath(new URL("../dashboard/", import.meta.url)),
    configFile: false,
    envDir: false,
    logLevel: "warn",
    cacheDir: fileURLToPath(new URL("../../node_modules/.cache/berth-vite", import.meta.url)),
    resolve: {
      alias: {
        zod: fileURLToPath(new URL("z.ts", import.meta.url)),
        // React has what this package brings to its old versions.
        "use-sync-external-store/shim/with-selector": "use-sync-external-store/with-selector",
      },
    },
    plugins: [contractTables(), react(), tailwind()],
    build: {
      target: "es2023",
      assetsInlineLimit: 0,
      chunkSizeWarningLimit: 600,
      modulePreload: { polyfill: false },
      rolldownOptions: {
        // Schemas and rows of the contract that no page uses.
        treeshake: { manualPureFunctions: ["z", "row"] },
        // A busy machine is slow, which is no warning about the bundle.
        checks: { bundlerTimings: false },
        output: { codeSplitting: { groups } },
      },
    },
  };
}

// Browsers fetch six files at a time, so the code that many pages share is two files instead of twenty: what the frame needs, and the rest.
const groups = [
  {
    name: "packages",
    tags: ["$initial" as const],
    test: /node_modules\/(?:react|react-dom|scheduler|use-sync-external-store|@tanstack\/(?!react-virtual|virtual-core)[^/]+)\//,
  },
  { name: "frame", tags: ["$initial" as const] },
  { name: "shared", test: /\/src\/(?:dashboard|contract)\/|\/lucide-react\//, minShareCount: 4 },
];

/**
 * Replaces the contract's rows and errors with small tables; they would be a sixth of the first load's script. The dashboard and the
 * control plane that serves it have the same version, so responses need no second validation, and the server validates forms. The browser
 * needs only what sends a call and what `refusal` depends on.
 */
function contractTables(): Plugin {
  const tables = new Map([
    [pathOf("routes.ts"), routesModule()],
    [pathOf("errors.ts"), errorsModule()],
    [pathOf("dry-run.ts"), `export { z as dryRun } from "zod";`],
  ]);
  return { name: "contract-tables", enforce: "pre", load: (id) => tables.get(id) };
}

const pathOf = (name: string) => fileURLToPath(new URL(`../contract/${name}`, import.meta.url));

function routesModule(): string {
  return `export const routes = ${JSON.stringify(routes.map(neededOf))};
const byName = new Map(routes.map((row) => [row.name, row]));
export const route = (name) => byName.get(name);`;
}

function neededOf(row: Row): Partial<Row> {
  const { name, method, path, access, scope, further_scopes, waits } = row;
  const within = needsAllProjects(row) ? {} : { within_projects: true };
  const further = further_scopes.length > 0 ? { further_scopes } : {};
  return { name, method, path, access, scope, ...further, ...within, ...(waits ? { waits } : {}) };
}

function errorsModule(): string {
  const statuses = Object.entries(errors).map(([code, { status }]) => [code, { status }]);
  return `export const errors = ${JSON.stringify(Object.fromEntries(statuses))};`;
}
