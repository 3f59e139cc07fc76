import { fileURLToPath } from "node:url";
import type { Plugin } from "vite";
import { errors } from "../contract/errors.ts";
import { routes } from "../contract/routes.ts";
import type { Row } from "../contract/table.ts";

/**
 * Replaces the contract's rows and errors with small tables; they would be a sixth of the first load's script. The dashboard and the
 * control plane that serves it have the same version, so responses need no second validation, and the server validates forms. The browser
 * needs only what sends a call and what `refusal` depends on.
 */
export function contractTables(): Plugin {
  const tables = new Map([
    [pathOf("routes.ts"), routesModule()],
    [pathOf("errors.ts"), errorsModule()],
  ]);
  return { name: "contract-tables", enforce: "pre", load: (id) => tables.get(id) };
}

const pathOf = (name: string) => fileURLToPath(new URL(`../contract/${name}`, import.meta.url));

function routesModule(): string {
  return `export const routes = ${JSON.stringify(routes.map(neededOf))};
const byName = new Map(routes.map((row) => [row.name, row]));
export const route = (name) => byName.get(name);`;
}

function neededOf({ name, method, path, access, scope, further_scopes, waits }: Row): Partial<Row> {
  const further = further_scopes.length > 0 ? { further_scopes } : {};
  return { name, method, path, access, scope, ...further, ...(waits ? { waits } : {}) };
}

function errorsModule(): string {
  const statuses = Object.entries(errors).map(([code, { status }]) => [code, { status }]);
  return `export const errors = ${JSON.stringify(Object.fromEntries(statuses))};`;
}
