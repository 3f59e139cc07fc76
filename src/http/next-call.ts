import { errors, type ErrorCode, type ErrorDefinition, type NextCall } from "../contract/errors.ts";
import { routes } from "../contract/routes.ts";

const byName = new Map<string, (typeof routes)[number]>(routes.map((row) => [row.name, row]));

/** Returns the call that an error's definition suggests, with its path filled in from the request; undefined when that is impossible. */
export function nextCallOf(code: ErrorCode, params: unknown): NextCall | undefined {
  const definition: ErrorDefinition = errors[code];
  const row = byName.get(definition.next ?? "");
  const path = row === undefined ? undefined : pathOf(row.path, params);
  return row === undefined || path === undefined ? undefined : { route: row.name, method: row.method, path };
}

/** Fills a request's path parameters into a row's path; undefined when one is missing. */
export function pathOf(path: string, params: unknown): string | undefined {
  const given = (params ?? {}) as Readonly<Record<string, string | undefined>>;
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name = ""]) => name);
  if (names.some((name) => given[name] === undefined)) return undefined;
  return path.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(given[name] ?? ""));
}
